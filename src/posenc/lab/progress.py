"""What is said while a grid runs: a live line on a terminal, plain lines in a pipe."""

import platform
import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from posenc.lab.planning import Plan, Planned, counts, seconds_left
from posenc.lab.running import Watcher
from posenc.lab.store import Store


@dataclass
class Told(Watcher):
    """A line for each run that ends, and a bar on a terminal."""

    store: Store
    workers: int
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    steps: int = 0

    def __enter__(self) -> "Told":
        self.began = time.monotonic()
        self.console = Console(file=self.stream, highlight=False, markup=False)
        columns = BarColumn(10), TextColumn("{task.description}"), TimeElapsedColumn()
        is_piped = not self.console.is_terminal
        self.bar = Progress(*columns, console=self.console, disable=is_piped)
        self.bar.start()
        self.task = self.bar.add_task("beginning", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def changed(self, plan: Plan, active: int) -> None:
        if self.bar.disable:
            return
        found, speed = counts(plan, self.store), self.steps / (time.monotonic() - self.began)
        left_over = plan.total - found["made"] - found["failed"] - active
        told = (
            f"{found['made']} of {plan.total} made, {active} running, {found['failed']} failed, "
            f"{left_over} left · {speed:.0f} steps/s · {left(plan, self.store, self.workers)}"
        )
        self.bar.update(self.task, total=plan.total, completed=found["made"], description=told)

    def ended(self, run: Planned, said: str) -> None:
        result = self.store.result(run.id)
        if result is not None:
            self.steps += result["outcome"]["steps"]
            said = f"{said} in {result['cost']['seconds']:.1f} s"
        self.console.print(f"{run.id} {run}: {said}", soft_wrap=self.bar.disable)


def left(plan: Plan, store: Store, workers: int) -> str:
    """The time until all is made, in words, by the runs that were made on this machine."""
    seconds = seconds_left(plan, store, platform.node(), workers)
    if seconds is None:
        return "time unknown until a run is made on this machine"
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 4 s, 2 min, 1 h 30 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
