"""Many runs at once: nothing twice, nothing lost, and the same numbers however they are made."""

import errno
import io
import os
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace
from tests.lab.conftest import TINY, configuration

from posenc.lab import Store, planned, trained
from posenc.lab.configuration import Extension
from posenc.lab.running import Runner, Told, end_of
from posenc.lab.working import FAILED, MADE, NO_SPACE, made, make

PROCESSES = pytest.mark.slow("starts processes that load torch")
TWO = TINY.replace("seeds = 2", "seeds = 1")  # runs: each is a process, which is slow to begin


def outcomes(store: Store) -> dict:
    return {each["id"]: each["outcome"] for each in store.results()}


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_loses_no_finished_run_and_leaves_no_parts(tiny, store, monkeypatch):
    before, asked = make(configuration(seed=7), store), planned(tiny(), store).runs[0]
    monkeypatch.setattr(os, "fsync", full_disk)
    assert made(asked.configuration, store) == NO_SPACE
    with pytest.raises(RuntimeError, match="full; the 1 run"):
        end_of(asked, NO_SPACE, store)
    assert list(store.results()) == [before]
    assert not list(store.root.rglob("*.part"))
    assert not store.failures()  # it is no fault of the run
    monkeypatch.undo()
    assert made(asked.configuration, store) == MADE


def test_an_error_is_written_down_and_not_repeated(store):
    asked = replace(configuration(), use=("ALiBi(3)",))
    assert made(asked, store) == FAILED
    assert "heads" in store.failures()[asked.id]
    assert store.has_failed(asked.id)
    assert store.clean()["failures"] == 1
    assert not store.has_failed(asked.id)


def test_a_source_that_has_changed_since_the_plan_makes_no_run(store):
    """Its result would stand under the digest of what was not run."""
    base = configuration()
    longer = replace(base, extension=Extension(base.id, ("ALiBi(2)",), "other", 2))
    for asked in (configuration(version="other"), longer):
        assert made(asked, store) == FAILED
    assert not list(store.done())


def test_a_run_whose_process_dies_is_given_up_after_three_times(tiny, store):
    run, other, *_ = planned(tiny(), store).runs
    said = [end_of(run, -9, store) for _ in range(3)]
    assert ["given up" in each for each in (*said, end_of(other, 1, store))] == [0, 0, 1, 1]


def test_a_lock_says_who_runs_and_clean_leaves_it(store):
    (store.root / "results" / ".a.part").touch()
    with store.lock("run"):
        assert store.is_running("run")
        assert not store.is_running("other")
        assert store.clean()["parts"] == store.clean()["locks"] == 0
    assert not store.is_running("run")
    assert store.clean() == {"failures": 0, "logs": 0, "locks": 1, "parts": 1}


@PROCESSES
def test_two_invocations_repeat_nothing(tiny, store, tmp_path):
    grid = tiny(text=TWO.replace("steps = 4", "steps = 40"))
    words = [sys.executable, "-m", "posenc", "lab", "run", str(tmp_path / "tiny.toml"),
             "--folder", str(store.root)]  # fmt: skip
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate()[1] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(each.count(": made in") for each in said) == 2
    assert len(outcomes(store)) == len(planned(grid, store).runs) == 2


class Killing:
    """Kills the first process as soon as it holds its lock."""

    def __init__(self, store):
        self.store, self.said, self.runner = store, [], Runner

    def changed(self, plan, active):
        for process, run in list(self.runner.active.items()) if not self.said else ():
            while not self.store.is_running(run.id) and process.poll() is None:
                time.sleep(0.01)
            process.kill()
            self.said.append("killed")

    def ended(self, run, said):
        self.said.append(said)


@PROCESSES
def test_a_killed_worker_costs_no_run(tiny, store):
    grid, watcher = tiny(text=TWO.replace("steps = 4", "steps = 400")), Killing(store)
    watcher.runner = Runner(grid, store, 1, watcher)
    watcher.runner.run()
    assert watcher.said[0] == "killed"
    assert "begun again" in watcher.said[1]
    assert watcher.said[2:] == ["made", "made"]
    for run in planned(grid, store).runs:
        assert trained(run.configuration).written == outcomes(store)[run.id]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_line_for_each_run_and_a_bar_on_a_terminal(tiny, store, monkeypatch, stream):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    plan = planned(tiny(), store)
    run = plan.runs[0]
    with Told(store, 1, stream) as told:
        make(run.configuration, store)
        told.ended(run, "made")
        told.changed(plan, 0)
    text = stream.getvalue()
    assert f"{run.id} k_front · NoPE · seed 0: made in " in text
    if stream.isatty():
        assert "1 of 4 made, 0 running, 0 failed, 3 left" in text
    else:
        assert text.count("\n") == 1
        assert "\x1b" not in text
