"""Finding the command, help, mistakes, pipes and the end of a process."""

import io
import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

from posenc.cli.main import COMMANDS, main

COMMAND = [sys.executable, "-m", "posenc"]
HEAVY = ("torch", "numpy", "matplotlib", "rich", "tokenizers", "safetensors", "transformers")
QUICK = [
    *(["--help"], ["--version"], *([command, "--help"] for command in COMMANDS), ["tabel"]),
    *(["table", "--lenght", "3"], ["table", "--length", "x"], ["walk", "a", "b"], ["convert"]),
    *(["explain"], ["explain", "--convention", "timestep", "--format", "json"]),
]
"""What a reader who only wants help, or has mistyped, should not have to wait for."""

WITHOUT_TENSORS = [["explain", "--dim", "7", "--dimension", "6"], ["binary"], ["info"]]


def test_help_names_every_command(run):
    for words in ((), ("--help",), ("help",)):
        ran = run(*words)
        assert ran.status == 0
        assert all(f"\n  {command}" in ran.out for command in COMMANDS)
        assert max(map(len, ran.out.splitlines())) < 80
    assert run("help", "table").out == run("table", "--help").out
    assert run("--version").out == f"posenc {version('posenc')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_that_fits(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    ran = run(command, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert COMMANDS[command] in ran.out
    lines = ran.out.replace(COMMANDS[command], "").splitlines()[1:]
    assert max(map(len, lines)) <= 80


def loaded_by(lines: list[list[str]], heavy: tuple[str, ...]) -> str:
    """Which heavy modules a new process has loaded after some commands."""
    code = (
        "import sys, contextlib, io\nfrom posenc.cli.main import main\n"
        f"for words in {lines!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), "
        "contextlib.redirect_stderr(io.StringIO()):\n"
        "        main(words)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout


def test_help_and_mistakes_answer_without_torch():
    assert loaded_by(QUICK, (*HEAVY, "typeguard")) == "[]\n"


def test_commands_that_need_no_tensors_answer_without_torch():
    assert loaded_by(WITHOUT_TENSORS, ("torch", "numpy", "jaxtyping")) == "[]\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("walkk",), "did you mean 'walk'?"),
        (("xyz",), "expected one of encode, table"),
        (("table", "--lenght", "4"), "Perhaps you meant: --length"),
        (("table", "--format", "jsn"), "'text', 'csv', 'json'"),
        (("table", "--encoding", "ALiBi(2)", "--dim", "8"), "--dim says nothing"),
        (("encode", "your", "cat"), "Unrecognized options: cat"),
        (("table", "--dim", str(2**63 - 1)), "one of 1 … 1048576"),
        (("explain", "--dim", "0"), "dim is 0"),
        (("table", "--encoding", "Rotry(8)"), "did you mean 'Rotary'?"),
        (("distance", "--length", "1000000000000"), "memory"),
        (("table", "--encoding", "CoPE(2,8,9)"), "posenc walk"),
        (("table", "--encoding", "AxialRotary(8)"), "along one line"),
        (("shift", "--encoding", "PoPE(8,2)"), "linear map"),
        (("heatmap", "--output", "out.gif"), "must end in"),
    ],
)
def test_a_mistake_says_what_was_meant(refused, words, said):
    assert said in refused(*words)


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (["encode", "a"], "tokenizers", "cli"),
        (["explain"], "tyro", "cli"),
        (["table"], "rich", "cli"),
        (["explain"], "numpy", None),
        (["heatmap"], "matplotlib", None),
        (["heatmap", "-o", "a.png"], "matplotlib", "plots"),
        (["lab", "plan", "quick"], "jinja2", "lab"),
    ],
)
def test_without_an_extra_a_command_runs_or_names_it(words, missing, extra):
    code = f"import sys\nsys.modules[{missing!r}] = None\nfrom posenc.cli.main import main\n"
    whole = [sys.executable, "-c", f"{code}sys.exit(main({words!r}))"]
    ran = subprocess.run(whole, capture_output=True, text=True)
    assert ran.returncode == (2 if extra else 0)
    assert not extra or f"needs {missing}: pip install 'posenc[{extra}]'" in ran.stderr


def test_a_reader_who_leaves_hears_no_complaint():
    words = ["table", "--length", "100000", "--dim", "16", "--format", "csv"]
    table = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert table.stdout is not None
    assert table.stderr is not None
    assert table.stdout.readline().startswith(b"position,dim_0")
    table.stdout.close()
    assert table.stderr.read() == b""
    assert table.wait(60) == 128 + signal.SIGPIPE


def test_letters_that_a_screen_lacks_are_written_as_their_numbers(monkeypatch):
    made = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    monkeypatch.setattr(sys, "stdout", made)
    assert main(["compare", "--length", "11"]) == 0
    assert b"\\u2212" in made.buffer.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("words", [["--help"], ["table", "--help"]])
def test_a_full_disk_behind_the_screen_is_one_line(words):
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "No space left on device" in ran.stderr


def test_info_names_versions_and_what_is_compiled(told):
    found = told("info")
    assert found["torch"] == version("torch")
    assert found["kernels"].startswith(("native C: built for", "pure torch: "))
    assert found["optional"]["matplotlib"]
