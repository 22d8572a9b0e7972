"""Runs on many machines by Ray (extra ``ray``): the same runs, the same files.

The store must be a folder that all nodes share. Ray begins again what a lost node was at; the lease
of the dead grows stale, and the run goes on from its checkpoint. The address is that of
``RAY_ADDRESS``; without it, Ray serves this machine alone.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posenc.lab.grid import Grid
from posenc.lab.leases import STALE
from posenc.lab.planning import Plan, Planned, planned
from posenc.lab.running import FullDiskError, Silent, Watcher, full, told
from posenc.lab.store import Store
from posenc.lab.working import NO_SPACE

RETRIES = 3


@dataclass
class RayRunner:
    """Makes what is left of a grid with Ray Core tasks, one CPU each.

    Args:
        grid: What is to be run.
        store: Where results are kept; a folder that every node sees under this path.
        watcher: Told what happens.
        every: Seconds between checkpoints.

    Raises:
        ValueError: Ray is not installed.
        FullDiskError: From ``run``: the disk of the store is full.
    """

    grid: Grid
    store: Store
    watcher: Watcher = field(default_factory=Silent)
    every: float = 10.0

    def run(self) -> Plan:
        """Works until every run is made or given up."""
        ray = _ray()
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        make = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=True)(_make)
        pending: dict[Any, Planned] = {}
        asked: set[str] = set()
        plan = planned(self.grid, self.store)
        while True:
            for run in plan.runs:
                if run.id not in asked and not self.store.is_done(run.id) and self._may(run):
                    asked.add(run.id)
                    given = json.dumps(told(run, self.grid, self.every))
                    pending[make.remote(str(self.store.root.resolve()), run.id, given)] = run
            self.watcher.changed(plan, len(pending))
            if not pending:
                return plan
            ready, _ = ray.wait(list(pending), num_returns=1)
            for each in ready:
                self._ended(pending.pop(each), each)
            plan = planned(self.grid, self.store)

    def _may(self, run: Planned) -> bool:
        return run.is_ready(self.store) and not self.store.has_failed(run.id)

    def _ended(self, run: Planned, reference: Any) -> None:
        ray = _ray()
        try:
            status = ray.get(reference)
        except ray.exceptions.RayError as error:
            self.store.note_failure(run.id, f"Ray gave up: {error}", final=True)
            status = None
        if status == NO_SPACE:
            raise FullDiskError(full(self.store))
        made = self.store.is_done(run.id)
        if not made and not self.store.has_failed(run.id):
            self.store.note_failure(run.id, f"its process ended with status {status}", final=True)
        self.watcher.ended(run, "made" if made else "failed")


def _make(root: str, run: str, given: str) -> int:
    """What a node does: claims the run, and makes it in a process of its own."""
    store = Store(Path(root))
    waited = time.monotonic()
    while not store.is_done(run):
        lease = store.claim(run)
        if lease is None:
            if time.monotonic() - waited > 100 * STALE:
                raise TimeoutError(f"run {run} is somebody else's and does not end")
            time.sleep(1.0)
            continue
        try:
            with open(store.path("logs", run), "ab") as log:
                words = [sys.executable, "-m", "posenc.lab.working", root, run, lease.token]
                ran = subprocess.run(
                    words, input=given.encode(), stdout=log, stderr=log, check=False
                )
        finally:
            lease.release()
        if ran.returncode < 0:
            raise RuntimeError(f"the process of run {run} was killed by signal {-ran.returncode}")
        return ran.returncode
    return 0


def _ray() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(
            "--engine ray needs Ray, which is not installed: pip install 'posenc[ray]'"
        ) from None
    return ray
