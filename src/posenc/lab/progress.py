"""What is said while a grid runs: a live line on a terminal, plain lines in a pipe."""

import platform
import sys
import time
from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from posenc.lab.planning import Plan, Planned, counts, seconds_left
from posenc.lab.store import Store


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
