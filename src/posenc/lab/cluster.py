"""Runs on the cluster of ``RAY_ADDRESS`` (extra ``ray``): the same processes, the same files.

All nodes must share the folder of the store, with file locks.
"""

import subprocess
from dataclasses import dataclass, field
from typing import Any

from posenc.lab.grid import Grid
from posenc.lab.planning import Plan, Planned, planned
from posenc.lab.running import Watcher, command, end_of, is_left
from posenc.lab.store import MOST_ATTEMPTS, Store


@dataclass
class RayRunner:
    """Makes what is left of a grid with Ray Core tasks, one CPU each."""

    grid: Grid
    store: Store
    watcher: Watcher = field(default_factory=Watcher)

    def run(self) -> Plan:
        """Works until every run is made or given up."""
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ValueError("--engine ray needs Ray: pip install 'posenc[ray]'") from None
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        make = ray.remote(num_cpus=1, max_retries=MOST_ATTEMPTS, retry_exceptions=True)(_make)
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


def _make(words: list[str], log: str) -> int:
    """What a node does; Ray begins again what a signal ended."""
    with open(log, "ab") as file:
        ran = subprocess.run(words, stdout=file, stderr=file, check=False)
    if ran.returncode < 0:
        raise RuntimeError(f"its process was killed by signal {-ran.returncode}")
    return ran.returncode
