"""Runs on one machine: a process each, one or two at a time, none of them made twice."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Protocol

from posenc.lab.grid import Grid
from posenc.lab.leases import Lease
from posenc.lab.planning import Plan, Planned, planned
from posenc.lab.store import Store
from posenc.lab.working import MADE, NO_SPACE

LOOK = 0.2
"""Seconds between two looks at processes and leases."""


class FullDiskError(Exception):
    """The disk is full; what is made is kept."""


class Watcher(Protocol):
    """Who is told what happens."""

    def changed(self, plan: Plan, active: int) -> None:
        """Runs were begun or ended."""

    def ended(self, run: Planned, said: str) -> None:
        """A run was made, or its process ended otherwise."""


class Silent:
    """A watcher that says nothing."""

    def changed(self, plan: Plan, active: int) -> None:
        """Nothing."""

    def ended(self, run: Planned, said: str) -> None:
        """Nothing."""


@dataclass
class Active:
    """A run whose process is at work."""

    run: Planned
    lease: Lease
    process: subprocess.Popen


@dataclass
class Runner:
    """Makes what is left of a grid.

    A process that dies leaves its checkpoint, and its run is begun again from there, three times at
    most; one that raises an error is given up, since it would raise it again.

    Args:
        grid: What is to be run.
        store: Where results are kept, and leases.
        workers: Processes at a time.
        watcher: Told what happens.
        every: Seconds between checkpoints.

    Raises:
        FullDiskError: From ``run``: the disk is full. Nothing that is made is lost.
    """

    grid: Grid
    store: Store
    workers: int = 1
    watcher: Watcher = field(default_factory=Silent)
    every: float = 10.0
    active: list[Active] = field(default_factory=list)

    def run(self) -> Plan:
        """Works until every run is made or given up, also those that others are at."""
        plan = planned(self.grid, self.store)
        try:
            self._begin(plan)
            while self.active or self._left(plan):
                time.sleep(LOOK)
                if self._collect():
                    plan = planned(self.grid, self.store)
                elif not self.active:
                    plan = planned(self.grid, self.store)  # others may have made some
                self._begin(plan)
            return plan
        finally:
            self._stop()

    def _left(self, plan: Plan) -> list[Planned]:
        """What is neither made nor given up, nor waits for what is given up."""
        return [
            run
            for run in plan.runs
            if not self.store.is_done(run.id)
            and not self.store.has_failed(run.id)
            and not _is_in_vain(run, self.store)
        ]

    def _begin(self, plan: Plan) -> None:
        """Fills the free places with runs that nobody is at."""
        before, busy = len(self.active), {each.run.id for each in self.active}
        for run in self._left(plan):
            if len(self.active) >= self.workers:
                break
            if run.id not in busy and run.is_ready(self.store):
                self._claim(run)
        if len(self.active) != before or not before:
            self.watcher.changed(plan, len(self.active))

    def _claim(self, run: Planned) -> None:
        lease = self.store.claim(run.id)
        if lease is None:
            return
        if self.store.is_done(run.id):  # made between the look and the claim
            lease.release()
            return
        self.active.append(Active(run, lease, self._started(run, lease)))

    def _started(self, run: Planned, lease: Lease) -> subprocess.Popen:
        with open(self.store.path("logs", run.id), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "posenc.lab.working",
                 str(self.store.root.resolve()), run.id, lease.token],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(told(run, self.grid, self.every)).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass  # it died at once; what it says is read when it is collected
        return process

    def _collect(self) -> bool:
        """Takes notice of processes that have ended."""
        ended = [each for each in self.active if each.process.poll() is not None]
        self.active = [each for each in self.active if each not in ended]
        for each in ended:
            self._ended(each)
        return bool(ended)

    def _ended(self, each: Active) -> None:
        each.lease.release()
        status, run = each.process.returncode, each.run
        if status == NO_SPACE:
            raise FullDiskError(full(self.store))
        if self.store.is_done(run.id):
            self.watcher.ended(run, "made")
            return
        if self.store.has_failed(run.id):
            self.watcher.ended(run, f"failed: see {self.store.path('failures', run.id)}")
            return
        ending = f"its process ended with status {status}"
        self.store.note_failure(run.id, ending, final=status == MADE)
        given_up = self.store.has_failed(run.id)
        self.watcher.ended(run, f"{ending}; {'given up' if given_up else 'begun again'}")

    def _stop(self) -> None:
        """Ends what is still at work: its checkpoint is kept, and its lease is free at once."""
        for each in self.active:
            each.process.terminate()
        for each in self.active:
            each.process.wait()
            each.lease.release()
        self.active = []


def told(run: Planned, grid: Grid, every: float) -> dict:
    """What a worker reads: the configuration, and where own classes lie."""
    return {
        "configuration": run.configuration.written(),
        "folder": str(grid.folder),
        "path": [str(grid.folder)],
        "every": every,
    }


def full(store: Store) -> str:
    """What is said of a full disk."""
    made = sum(1 for _ in store.done())
    return (
        f"the disk of {store.root} is full; the {made} runs that are made are kept. Free some "
        "space, and run the grid again: it goes on from there"
    )


def _is_in_vain(run: Planned, store: Store) -> bool:
    extension = run.configuration.extension
    return extension is not None and store.has_failed(extension.of)
