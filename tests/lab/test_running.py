"""Many runs at once: nothing twice, nothing lost, and the same numbers however they are made."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from tests.lab.conftest import TINY, configuration

from posenc.lab import Store, checkpoints, files, planned, trained
from posenc.lab.configuration import Extension
from posenc.lab.running import FullDiskError, Runner
from posenc.lab.working import NO_SPACE, _made, make

PROCESSES = pytest.mark.slow("starts processes that load torch")
TWO = TINY.replace("seeds = 2", "seeds = 1")  # runs: each is a process, which is slow to begin


class Recorder:
    """Keeps what was said."""

    def __init__(self):
        self.said = []

    def changed(self, plan, active): ...

    def ended(self, run, said):
        self.said.append(said)


def outcomes(store: Store) -> dict:
    return {each["id"]: each["outcome"] for each in store.results()}


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_is_made_is_not_made_again(store, monkeypatch):
    first = make(configuration(), store)
    monkeypatch.setattr("posenc.lab.working.trained", full_disk)
    assert make(configuration(), store) == first


def test_a_result_is_kept_whole_and_its_checkpoint_goes(store):
    asked = configuration()
    result = make(asked, store, every=0.0)
    assert json.loads(store.path("results", asked.id).read_text()) == result
    assert not store.path("checkpoints", asked.id).exists()
    assert store.weights(asked.id)["embedding.weight"].shape == (8, 8)


def test_a_full_disk_loses_no_finished_run_and_leaves_no_parts(store, monkeypatch):
    made, asked = make(configuration(seed=1), store), configuration()
    monkeypatch.setattr(files.os, "fsync", full_disk)
    assert not checkpoints.save(store.path("checkpoints", "x"), {"id": "x"})
    written = json.dumps({"configuration": asked.written(), "every": 0.0})
    assert _made(store, asked.id, written) == NO_SPACE
    assert list(store.results()) == [made]
    assert not list(store.root.rglob("*.part"))
    assert store.failure(asked.id) is None  # it is no fault of the run
    monkeypatch.undo()
    assert _made(store, asked.id, written) == 0


def test_an_error_is_written_down_and_not_repeated(store):
    asked = replace(configuration(), use=("ALiBi(3)",))
    assert _made(store, asked.id, json.dumps({"configuration": asked.written()})) == 3
    assert "ALiBi was built with heads=3" in store.failure(asked.id)["said"]
    assert store.has_failed(asked.id)
    assert store.clean()["failures"] == 1
    assert not store.has_failed(asked.id)


def test_a_source_that_has_changed_since_the_plan_makes_no_run(store):
    """Its result would stand under the digest of what was not run."""
    later = configuration(version="other")
    base = configuration()
    longer = replace(base, extension=Extension(base.id, ("ALiBi(2)",), "other", 2))
    for asked in (later, longer):
        assert _made(store, asked.id, json.dumps({"configuration": asked.written()})) == 3
        assert "the source of ALiBi(2) has the digest" in store.failure(asked.id)["said"]
    assert not list(store.done())


def test_a_run_whose_process_dies_is_given_up_after_three_times(store):
    for attempt in (1, 2, 3):
        assert not store.has_failed("run")
        store.note_failure("run", "died", final=False)
        assert store.failure("run")["attempts"] == attempt
    assert store.has_failed("run")


@PROCESSES
def test_one_worker_and_two_give_the_same(tiny, tmp_path):
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    Runner(tiny(text=TWO), one).run()
    Runner(tiny(text=TWO), two, workers=2).run()
    assert len(outcomes(one)) == 2
    assert outcomes(one) == outcomes(two)


@PROCESSES
def test_two_invocations_repeat_nothing(tiny, store, tmp_path):
    grid = tiny(text=TWO.replace("steps = 4", "steps = 40"))
    words = [sys.executable, "-m", "posenc.cli.main", "lab", "run", str(tmp_path / "tiny.toml")]
    both = [
        subprocess.Popen([*words, "--folder", str(tmp_path / "all")], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [each.communicate()[1].decode() for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(each.count(": made in") for each in said) == 2
    assert len(outcomes(Store(tmp_path / "all"))) == len(planned(grid, store).runs) == 2


@PROCESSES
def test_a_killed_worker_costs_no_run(tiny, store):
    grid = tiny(text=TWO.replace("steps = 4", "steps = 400"))
    recorder = Recorder()
    runner = Runner(grid, store, watcher=recorder, every=0.05)

    class Killing(Recorder):
        def changed(self, plan, active):
            if active and not recorder.said and not self.said:
                process = runner.active[0].process
                path = store.path("checkpoints", runner.active[0].run.id)
                while not path.exists() and process.poll() is None:
                    time.sleep(0.01)
                os.kill(process.pid, signal.SIGKILL)
                self.said.append("killed")

        def ended(self, run, said):
            recorder.ended(run, said)

    runner.watcher = Killing()
    runner.run()
    assert recorder.said[0] == "its process ended with status -9; begun again"
    assert recorder.said.count("made") == 2
    for run in planned(grid, store).runs:
        assert trained(run.configuration).written == outcomes(store)[run.id]


@PROCESSES
def test_a_disk_that_fills_up_is_said_and_the_rest_is_made_later(tiny, store, monkeypatch):
    """A real limit on the size of files: weights do not fit, and nothing breaks."""
    import resource

    grid = tiny(text=TWO)
    made = make(planned(grid, store).runs[0].configuration, store)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(FullDiskError, match="is full; the 1 runs that are made are kept"):
            Runner(grid, store).run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(store.results()) == [made]
    Runner(grid, store).run()
    assert len(outcomes(store)) == 2
