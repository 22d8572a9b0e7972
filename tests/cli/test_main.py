"""Finding the command, help, mistakes, pipes and the end of a process."""

import ast
import io
import json
import os
import socket
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import posenc.cli.commands as commands
from posenc.cli.commands import COMMANDS, info
from posenc.cli.main import main

COMMAND = [sys.executable, "-m", "posenc.cli.main"]


def test_help_names_every_command(run):
    for words in ((), ("--help",), ("help",)):
        ran = run(*words)
        assert ran.status == 0
        for command in COMMANDS:
            assert f"  {command}" in ran.out
        assert max(map(len, ran.out.splitlines())) < 80


def test_help_of_a_command_by_either_order(run):
    assert run("help", "table").out == run("table", "--help").out


def test_no_two_files_need_each_other():
    """Imports inside of functions count, too: what they hide is still a circle."""
    root = Path(str(commands.__file__)).parents[1]
    graph = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parents[1]).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        graph[name] = {
            target
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("posenc.cli")
            for target in (
                str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)
            )
        }  # fmt: skip
    graph = {name: (graph[name] & graph.keys()) - {name} for name in graph}
    assert len(graph) > 40
    while leaves := [name for name, needs in graph.items() if not needs]:
        graph = {name: needs - set(leaves) for name, needs in graph.items() if needs}
    assert not graph, graph


def test_every_file_of_the_folder_is_a_command_with_run():
    files = {path.stem for path in Path(str(commands.__file__)).parent.glob("*.py")}
    assert files - {"__init__"} == set(COMMANDS)
    for name in COMMANDS:
        assert callable(commands.command_named(name).run)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run, command):
    ran = run(command, "--help")
    assert ran.status == 0
    assert f"usage: posenc {command}" in ran.out
    assert ran.err == ""


def test_version_is_that_of_the_package(run):
    assert run("--version").out == f"posenc {version('posenc')}\n"


def test_the_command_that_is_installed_is_this_one():
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module, function = declared["project"]["scripts"]["posenc"].split(":")
    assert getattr(import_module(module), function) is import_module("posenc.cli.main").main


# What a reader who only wants help or has mistyped should not have to wait for.
HEAVY = ("torch", "numpy", "matplotlib", "rich", "tokenizers", "safetensors", "transformers")
QUICK = [
    ["--help"],
    ["--version"],
    *([command, "--help"] for command in COMMANDS),
    ["tabel"],
    ["table", "--lenght", "3"],
    ["table", "--length", "three"],
    ["table", "--start", "9" * 30],
    ["walk", "a", "b"],
    ["inspect"],
    ["convert"],
]

# What whole numbers answer; every other command builds an encoding, which is a module of torch.
WITHOUT_TENSORS = [
    ["explain"],
    *(["explain", "--convention", name, "--format", "json"] for name in ("paper", "timestep")),
    ["explain", "--dim", "7", "--dimension", "6", "--convention", "tensor2tensor"],
    ["explain", "--dimension", "9"],
    ["binary"],
    ["binary", "--format", "csv"],
    ["info"],
    ["info", "--format", "json"],
]


def loaded_by(commands: list[list[str]], heavy: tuple[str, ...]) -> str:
    """Which heavy modules a new process has loaded after some commands."""
    code = (
        "import sys, contextlib, io\nfrom posenc.cli.main import main\n"
        f"for words in {commands!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), "
        "contextlib.redirect_stderr(io.StringIO()):\n"
        "        main(words)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout


def test_help_and_mistakes_answer_without_torch():
    assert loaded_by(QUICK, HEAVY) == "[]\n"


def test_commands_that_need_no_tensors_answer_without_torch():
    assert loaded_by(WITHOUT_TENSORS, ("torch", "numpy", "jaxtyping")) == "[]\n"


@pytest.mark.slow("a process that loads torch")
def test_what_is_loaded_is_seen():
    assert "torch" in loaded_by([["explain", "--encoding", "ALiBi(8)"]], ("torch",))


MISTAKES = [
    (("walkk",), "'walkk' is no command; did you mean 'walk'?"),
    (("xyz",), "'xyz' is no command; expected one of encode, table"),
    (("--verson",), "'--verson' is no option; did you mean '--version'?"),
    (
        ("table", "--lenght", "4"),
        "'--lenght' is no option of posenc table; did you mean '--length'?",
    ),
    (("table", "--length", "four"), "--length: 'four' is no whole number"),
    (("table", "--length"), "--length: expected one argument"),
    (("table", "--base", "x"), "--base: 'x' is no number"),
    (
        ("table", "--format", "jsn"),
        "--format: 'jsn' is none of text, csv, json; did you mean 'json'?",
    ),
    (("table", "--seed", "9" * 30), "--seed: 999999999999999999999999999999 is beyond 64 bits"),
    (("table", "nonsense"), "'nonsense' is one word too many"),
    (
        ("encode", "your", "cat"),
        "'cat' is one word too many; put a text of several words in quotes",
    ),
    (("check",), "required: MODULE:FACTORY"),
    (("table", "--dim", str(2**63 - 1)), f"--dim: {2**63 - 1} is more than 1048576"),
    (("walk", "a", "--heads", "2000000"), "--heads: 2000000 is more than 1048576"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line_that_says_what_was_meant(refused, words, said):
    complaint = refused(*words)
    assert said in complaint
    if words[0] in COMMANDS:
        assert f"(see posenc {words[0]} --help)" in complaint


def test_an_option_is_not_taken_for_another_one_that_begins_alike(refused):
    assert "'--len' is no option" in refused("table", "--len", "3")


def test_the_conventions_in_the_help_are_those_of_the_library(run):
    from posenc.encodings.tokens.conventions import CONVENTIONS

    said = " ".join(run("table", "--help").out.split())
    for name in CONVENTIONS:
        assert name in said


def test_a_reader_who_leaves_hears_no_complaint():
    table = subprocess.Popen(
        [*COMMAND, "table", "--length", "100000", "--dim", "16", "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert table.stdout is not None
    assert table.stdout.readline().startswith(b"position,dim_0")
    table.stdout.close()
    assert table.stderr is not None
    assert table.stderr.read() == b""
    assert table.wait(60) == 141


def test_closed_streams_are_no_fault_of_the_program(monkeypatch, capsys):
    """Python has None in their place, where whoever started us closed them."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["table", "--length", "2"]) == 0
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["encode", "-"]) == 2
    assert capsys.readouterr().err == "posenc: standard input is closed; give TEXT or --file FILE\n"


def test_a_refusal_has_its_status_where_nobody_hears_it(monkeypatch):
    """It had 1, by which ``check`` says that something is wrong, ``parity`` that bits differ."""
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["check", "nope:X"]) == 2
    assert main(["parity", "vllm", "sglang"]) == 2


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_letters_that_a_screen_lacks_are_written_as_their_numbers(monkeypatch, encoding):
    """A minus sign ended a comparison midway."""
    made = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", made)
    assert main(["compare", "--length", "11"]) == 0
    assert b"\\u2212" in made.buffer.getvalue()


def test_a_version_stands_alone(refused):
    assert "--version stands alone; leave x out" in refused("--version", "x")


def test_a_port_that_is_taken_is_named(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in refused("explore", "--port", port, "--no-browser")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("words", [["--help"], ["table", "--help"]])
def test_a_full_disk_behind_the_screen_is_one_line(words):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "No space left on device" in ran.stderr


def test_info_names_versions_and_what_is_compiled(run):
    import torch

    ran = run("info")
    assert torch.__version__.split("+")[0] in ran.out
    assert "native C: built for" in ran.out or "pure torch: " in ran.out
    facts = json.loads(run("info", "--format", "json").out)
    assert facts["optional"]["matplotlib"]


def test_info_says_a_part_that_was_installed_by_another_name(run, monkeypatch, tmp_path):
    """As builds of torch bring Triton, whose version nobody knows by that name."""
    monkeypatch.setitem(info.OPTIONAL, "brought_by_another", "nothing")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "brought_by_another.py").touch()
    assert json.loads(run("info", "--format", "json").out)["optional"]["brought_by_another"] == (
        "unknown"
    )
