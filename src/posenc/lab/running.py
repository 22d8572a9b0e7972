"""Runs on one machine: a process each, a few at a time, none of them made twice."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

from posenc.lab.grid import Grid
from posenc.lab.planning import Plan, Planned, planned
from posenc.lab.store import Store
from posenc.lab.working import NO_SPACE, TAKEN

LOOK = 0.2  # seconds between two looks at processes and locks


class FullDiskError(RuntimeError):
    """The disk is full; what is made is kept."""


class Watcher:
    """Is told what happens; this one says nothing."""

    def changed(self, plan: Plan, active: int) -> None:
        """Runs were begun or ended."""

    def ended(self, run: Planned, said: str) -> None:
        """A run was made, or its process ended otherwise."""


@dataclass
class Runner:
    """Makes what is left of a grid, with some workers at a time.

    A run whose process dies is begun again, three times at most; one that raises is given up.
    """

    grid: Grid
    store: Store
    workers: int = 1
    watcher: Watcher = field(default_factory=Watcher)
    active: dict[str, tuple[Planned, subprocess.Popen]] = field(default_factory=dict)

    def run(self) -> Plan:
        """Works until every run is made or given up, also those that other processes make."""
        plan = planned(self.grid, self.store)
        try:
            while self._begin(plan):
                time.sleep(LOOK)
                if self._collect() or not self.active:
                    plan = planned(self.grid, self.store)
            return plan
        finally:
            for _, process in self.active.values():
                process.terminate()
                process.wait()

    def _begin(self, plan: Plan) -> bool:
        """Fills the free places; whether there is anything to wait for."""
        before = len(self.active)
        left = [run for run in plan.runs if is_left(run, self.store)]
        for run in left:
            is_next = len(self.active) < self.workers and run.id not in self.active
            if is_next and run.is_ready(self.store) and not self.store.is_running(run.id):
                self.active[run.id] = (run, self._started(run))
        if len(self.active) != before or not before:
            self.watcher.changed(plan, len(self.active))
        return bool(left or self.active)

    def _started(self, run: Planned) -> subprocess.Popen:
        alone = {**os.environ, "OMP_NUM_THREADS": "1"}
        with open(self.store.path("logs", run.id), "ab") as log:
            words = command(run, self.grid, self.store)
            return subprocess.Popen(words, stdout=log, stderr=log, env=alone)

    def _collect(self) -> bool:
        """Takes notice of processes that have ended; whether any has."""
        ended = [(run, p.returncode) for run, p in self.active.values() if p.poll() is not None]
        for run, status in ended:
            del self.active[run.id]
            if said := end_of(run, status, self.store):
                self.watcher.ended(run, said)
        return bool(ended)


def is_left(run: Planned, store: Store) -> bool:
    """Whether a run is neither made nor given up, nor extends one that is given up."""
    extension = run.configuration.extension
    in_vain = extension is not None and store.has_failed(extension.of)
    return not (store.is_done(run.id) or store.has_failed(run.id) or in_vain)


def command(run: Planned, grid: Grid, store: Store) -> list[str]:
    """What makes a run: a process that is told its configuration, and where own classes lie."""
    told = {"configuration": run.configuration.written(), "folder": str(grid.folder)}
    root = str(store.root.resolve())
    return [sys.executable, "-m", "posenc.lab.working", root, run.id, json.dumps(told)]


def end_of(run: Planned, status: int, store: Store) -> str:
    """What came of a run, in words; nothing where another process has it."""
    if status == TAKEN:
        return ""
    if status == NO_SPACE:
        raise FullDiskError(
            f"the disk of {store.root} is full; the {len(list(store.done()))} runs that are made "
            "are kept. Free some space, and run the grid again."
        )
    if store.is_done(run.id):
        return "made"
    if store.has_failed(run.id):
        return f"failed: see {store.path('failures', run.id)}"
    said = f"its process ended with status {status}"
    store.note_failure(run.id, said, final=status >= 0)
    return f"{said}; {'given up' if store.has_failed(run.id) else 'begun again'}"
