"""How the suite runs: what is left out is said, and parts of the slow tests are all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parallel import cores, processes

ROOT = Path(__file__).parents[1]
SUITE = """
import pytest

def test_quick(): pass

@pytest.mark.slow("too long", spares=4)
@pytest.mark.parametrize("number", range(40))
def test_long(number): pass

@pytest.mark.slow
def test_longest(): pass
"""


def run(*arguments: str, cwd: Path = ROOT) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=cwd, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


def passed(said: str) -> int:
    return int(said.split(" passed")[0].split()[-1])


@pytest.mark.slow("a small suite, run six times")
def test_slow_tests_are_left_out_counted_and_run_in_parts(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p tests.selection\nmarkers = slow")
    said = run(cwd=tmp_path)
    quick = passed(said)
    assert 2 <= quick <= 17  # a quarter of the long ones, by their names
    assert f"    1 of no given reason\n   {42 - quick} marked slow; `pytest -m slow`" in said
    assert passed(run("-m", "slow", cwd=tmp_path)) == 42 - quick
    parts = [passed(run("-m", "slow", "--part", f"{k}/3", cwd=tmp_path)) for k in range(3)]
    assert sum(parts) == 42 - quick
    assert passed(run("test_suite.py::test_longest", cwd=tmp_path)) == 1


def test_the_whole_suite_takes_all_cores_and_a_named_file_none(pytestconfig, monkeypatch):
    monkeypatch.setattr("tests.parallel.cores", lambda: 6)
    for whole, workers in [("TESTPATHS", 6), ("ARGS", 0)]:
        source = getattr(pytest.Config.ArgsSource, whole)
        monkeypatch.setattr(pytestconfig, "args_source", source)
        assert processes(pytestconfig) == workers
    assert cores() >= 1


@pytest.mark.slow("the suite collected once more")
def test_an_example_runs_alone_with_what_stands_before_it():
    page = "docs/exactness.md"
    lines = enumerate((ROOT / page).read_text().splitlines(), 1)
    last = [number for number, line in lines if line.startswith(">>> ")][-1]
    assert "1 passed" in run("-n", "0", f"{page}::line:{last},column:1")
