"""The runs of a grid, none of them made twice: on one machine a few at a time, or on a cluster.

While they run, a terminal shows a live line, and a pipe gets plain ones.
"""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from posenc.lab.grid import Grid
from posenc.lab.planning import Plan, Planned, counts, planned, seconds_left
from posenc.lab.store import MOST_ATTEMPTS, Store
from posenc.lab.working import NO_SPACE, TAKEN

LOOK = 0.2  # seconds between two looks at processes and locks


class Told(Progress):
    """A line for each run that ends, and a bar on a terminal."""

    def __init__(self, store: Store, workers: int, stream: TextIO | None = None):
        console = Console(file=stream or sys.stderr, highlight=False, markup=False)
        columns = BarColumn(10), TextColumn("{task.description}"), TimeElapsedColumn()
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self.store, self.workers = store, workers
        self.steps, self.began = 0, time.monotonic()
        self.bar = self.add_task("beginning", total=None)

    def changed(self, plan: Plan, active: int) -> None:
        """Runs were begun or ended."""
        if self.disable:
            return
        found, speed = counts(plan, self.store), self.steps / (time.monotonic() - self.began)
        left_over = plan.total - found["made"] - found["failed"] - active
        told = (
            f"{found['made']} of {plan.total} made, {active} running, {found['failed']} failed, "
            f"{left_over} left · {speed:.0f} steps/s · {left(plan, self.store, self.workers)}"
        )
        self.update(self.bar, total=plan.total, completed=found["made"], description=told)

    def ended(self, run: Planned, said: str) -> None:
        """A run was made, or its process ended otherwise."""
        result = self.store.result(run.id)
        if result is not None:
            self.steps += result["outcome"]["steps"]
            said = f"{said} in {result['cost']['seconds']:.1f} s"
        self.console.print(f"{run.id} {run}: {said}", soft_wrap=self.disable)


def left(plan: Plan, store: Store, workers: int) -> str:
    """The time until all is made, in words, by the runs that were made on this machine."""
    seconds = seconds_left(plan, store, platform.node(), workers)
    if seconds is None:
        return "time unknown until a run is made on this machine"
    return f"about {timedelta(seconds=round(seconds))} left"


@dataclass
class Runner:
    """Makes what is left of a grid: a process for each run, some workers at a time.

    A run whose process dies is begun again, three times at most; one that raises is given up.
    """

    grid: Grid
    store: Store
    workers: int
    watcher: Told  # is told what happens
    active: dict[subprocess.Popen, Planned] = field(default_factory=dict)

    def run(self) -> Plan:
        """Works until every run is made or given up, also those that other processes make."""
        try:
            while True:
                plan = planned(self.grid, self.store)
                left = [run for run in plan.runs if is_left(run, self.store)]
                if not left and not self.active:
                    return plan
                taken = {run.id for run in self.active.values()}
                for run in left:
                    is_next = len(self.active) < self.workers and run.id not in taken
                    if is_next and run.is_ready(self.store) and not self.store.is_running(run.id):
                        self.active[self._started(run)] = run
                self.watcher.changed(plan, len(self.active))
                self._wait()
        finally:
            for process in self.active:
                process.terminate()
                process.wait()

    def _started(self, run: Planned) -> subprocess.Popen:
        alone = {**os.environ, "OMP_NUM_THREADS": "1"}
        words = command(run, self.grid, self.store)
        with open(self.store.path("logs", run.id), "ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=alone)

    def _wait(self) -> None:
        """Until a process has ended; a moment where all that is left is made by others."""
        time.sleep(LOOK)
        while self.active and all(process.poll() is None for process in self.active):
            time.sleep(LOOK)
        for process in [each for each in self.active if each.poll() is not None]:
            run = self.active.pop(process)
            if said := end_of(run, process.returncode, self.store):
                self.watcher.ended(run, said)


@dataclass
class RayRunner:
    """Makes the same on the cluster of ``RAY_ADDRESS`` (extra ``ray``), one CPU a run.

    All nodes must share the folder of the store, with file locks.
    """

    grid: Grid
    store: Store
    watcher: Told

    def run(self) -> Plan:
        """Works until every run is made or given up."""
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ValueError("--engine ray needs Ray: pip install 'posenc[ray]'") from None
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        make = ray.remote(num_cpus=1, max_retries=MOST_ATTEMPTS, retry_exceptions=True)(_ran)
        pending: dict[Any, Planned] = {}
        while True:
            plan = planned(self.grid, self.store)
            at_work = {run.id for run in pending.values()}
            for run in plan.runs:
                if run.id not in at_work and is_left(run, self.store) and run.is_ready(self.store):
                    log = str(self.store.path("logs", run.id).resolve())
                    pending[make.remote(command(run, self.grid, self.store), log)] = run
            self.watcher.changed(plan, len(pending))
            if not pending:
                return plan
            for each in ray.wait(list(pending))[0]:
                run = pending.pop(each)
                try:
                    said = end_of(run, ray.get(each), self.store)
                except ray.exceptions.RayError as error:
                    said = f"Ray gave up: {error}"
                    self.store.note_failure(run.id, said, final=True)
                if said:
                    self.watcher.ended(run, said)


def _ran(words: list[str], log: str) -> int:
    """What a node does; Ray begins again what a signal ended."""
    with open(log, "ab") as file:
        status = subprocess.run(words, stdout=file, stderr=file, check=False).returncode
    if status < 0:
        raise RuntimeError(f"its process was killed by signal {-status}")
    return status


def is_left(run: Planned, store: Store) -> bool:
    """Whether a run is neither made nor given up, nor extends one that is given up."""
    extension = run.configuration.extension
    in_vain = extension is not None and store.has_failed(extension.of)
    return not (store.is_done(run.id) or store.has_failed(run.id) or in_vain)


def command(run: Planned, grid: Grid, store: Store) -> list[str]:
    """What makes a run: a process that is told where own classes lie, and its configuration."""
    told = str(store.root.resolve()), str(grid.folder), json.dumps(run.configuration.written())
    return [sys.executable, "-m", "posenc.lab.working", *told]


def end_of(run: Planned, status: int, store: Store) -> str:
    """What came of a run, in words; nothing where another process has it."""
    if status == TAKEN:
        return ""
    if status == NO_SPACE:
        made = len(store.done())
        raise RuntimeError(f"the disk of {store.root} is full; the {made} runs made are kept.")
    if store.is_done(run.id):
        return "made"
    if store.has_failed(run.id):
        return f"failed: see {store.path('failures', run.id)}"
    said = f"its process ended with status {status}"
    store.note_failure(run.id, said, final=status >= 0)
    return f"{said}; {'given up' if store.has_failed(run.id) else 'begun again'}"
