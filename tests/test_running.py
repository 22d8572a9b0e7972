"""How the suite runs: what is left out is said, and collecting is the same in every process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parallel import cores, processes

ROOT = Path(__file__).parents[1]
SUITE = """
import pytest

def test_quick(): pass

@pytest.mark.slow("too long")
def test_long(): pass

@pytest.mark.slow("too long")
def test_longer(): pass

@pytest.mark.slow
def test_longest(): pass
"""


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p tests.selection\nmarkers = slow")
    return tmp_path


@pytest.mark.slow("a suite in processes of its own")
@pytest.mark.parametrize(
    "workers", ["0", pytest.param("2", marks=pytest.mark.slow("a suite in processes of its own"))]
)
def test_what_is_left_out_is_counted_with_its_reason(suite, workers):
    said = run("-n", workers, cwd=suite)
    assert "1 passed" in said
    assert "    2 too long\n    1 of no given reason\n    3 marked slow; `pytest -m slow`" in said


@pytest.mark.slow("a small suite, run twice")
def test_whoever_names_markers_or_tests_gets_them(suite):
    assert "3 passed, 1 deselected" in run("-m", "slow", cwd=suite)
    named = run("test_suite.py::test_long", cwd=suite)
    assert "1 passed" in named
    assert "left out" not in named


@pytest.mark.slow("a small suite, run four times")
def test_parts_of_slow_tests_are_all_of_them_together(suite):
    (suite / "test_more.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.slow('too many')\n"
        "@pytest.mark.parametrize('number', range(20))\n"
        "def test_some(number): pass\n"
    )
    counts = [
        int(run("-m", "slow", "--part", f"{k}/3", cwd=suite).split(" passed")[0].split()[-1])
        for k in range(3)
    ]
    assert sum(counts) == 20 + 3
    assert max(counts) < 20


@pytest.mark.slow("a suite in processes of its own")
def test_some_of_many_slow_cases_are_spared(suite):
    (suite / "test_suite.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.slow('too many', spares=4)\n"
        "@pytest.mark.parametrize('number', range(40))\n"
        "def test_some(number): pass\n"
    )
    said = run(cwd=suite)
    spared = int(re.search(r"(\d+) passed", said)[1])
    assert 4 <= spared <= 16
    assert f"{40 - spared} marked slow" in said
    assert f"{40 - spared} passed" in run("-m", "slow", cwd=suite)
    assert f"{spared} passed" in run("-m", "not slow", cwd=suite)


def test_the_whole_suite_takes_all_cores_and_a_named_file_none(pytestconfig, monkeypatch):
    monkeypatch.setattr("tests.parallel.cores", lambda: 6)
    for whole, workers in [("TESTPATHS", 6), ("ARGS", 0)]:
        source = getattr(pytest.Config.ArgsSource, whole)
        monkeypatch.setattr(pytestconfig, "args_source", source)
        assert processes(pytestconfig) == workers
    monkeypatch.setattr(pytestconfig, "args_source", pytest.Config.ArgsSource.TESTPATHS)
    monkeypatch.setattr(pytestconfig.option, "usepdb", True)
    assert processes(pytestconfig) == 0
    assert cores() >= 1


EXECUTE = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
INTERRUPTED = """
import signal, subprocess, sys

def test_a_child_hears_ctrl_c():
    ask = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.check_output([sys.executable, "-c", ask]) == b"False\\n"
"""


@pytest.mark.skipif(os.name == "nt", reason="only Unix hands ignored signals down")
@pytest.mark.parametrize(
    "workers", ["0", pytest.param("1", marks=pytest.mark.slow("a suite in processes of its own"))]
)
def test_ctrl_c_is_heard_where_a_shell_ignores_it(tmp_path, workers):
    (tmp_path / "test_interrupted.py").write_text(INTERRUPTED)
    started = f"import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); {EXECUTE}"
    asked = [sys.executable, "-c", started, "-m", "pytest", "-p", "tests.parallel", "-n", workers]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]


@pytest.mark.slow("the suite collected once more")
def test_an_example_runs_alone_with_what_stands_before_it():
    page = "docs/exactness.md"
    lines = enumerate((ROOT / page).read_text().splitlines(), 1)
    last = [number for number, line in lines if line.startswith(">>> ")][-1]
    assert "1 passed" in run("-n", "0", f"{page}::line:{last},column:1")


@pytest.mark.slow("the suite collected once more")
def test_an_example_runs_after_later_ones_as_before_them():
    page = "docs/many-devices.md"
    lines = (ROOT / page).read_text().splitlines()
    asked = (lines.index(">>> out.shape") + 1, lines.index(">>> shards.join(out).shape") + 1)
    assert "2 passed" in run("-n", "0", *(f"{page}::line:{line},column:1" for line in asked))


@pytest.mark.slow("the suite collected again and again")
def test_collecting_does_not_depend_on_hashes():
    """Sets have another order in every process, and processes must agree on what they share."""
    everything = ("--collect-only", "-m", "slow or not slow", "-n", "0")
    one, other = (run(*everything, PYTHONHASHSEED=seed).split("\n\n")[0] for seed in "12")
    differing = [pair for pair in zip(one.split("\n"), other.split("\n"), strict=True)
                 if len(set(pair)) > 1]  # fmt: skip
    assert not differing[:3]
    assert one.count("::") > 4000  # names of tests, not of files


def test_one_browser_serves_all_tests():
    """A second one would not start in the same process: its fixture is in one file."""
    begins = "sync_" + "playwright"
    tests = Path(__file__).parent
    assert [p.name for p in tests.rglob("*.py") if begins in p.read_text()] == ["browser.py"]
