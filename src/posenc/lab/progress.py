"""What is said while a grid runs: a live line on a terminal, plain lines in a pipe."""

import sys
import time
from dataclasses import dataclass, field
from typing import Any, TextIO

from posenc.lab.planning import Plan, Planned, counts, seconds_left
from posenc.lab.store import Store


@dataclass
class Told:
    """Says what happens to the runs of a grid.

    On a terminal, rich shows runs made, running, failed and left, steps a second and the time left;
    elsewhere each run that ends is a line, which a file can hold.

    Args:
        store: Where results appear.
        host: This machine, whose speed foretells the rest.
        workers: Runs at a time.
        stream: Where to say it; standard error.
    """

    store: Store
    host: str
    workers: int
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    bar: Any = None
    task: Any = None

    def __enter__(self) -> "Told":
        if self.stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self.bar = Progress(
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(file=self.stream),
            )
            self.bar.start()
            self.task = self.bar.add_task("beginning", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def changed(self, plan: Plan, active: int) -> None:
        """Runs were begun or ended."""
        if self.bar is None:
            return
        found = counts(plan, self.store)
        said = [
            f"{found['made']} of {found['total']} runs",
            f"{found['running']} running",
            f"{found['failed']} failed",
            f"{found['left']} left",
        ]
        if self.steps:
            said.append(f"{self.steps / (time.monotonic() - self.began):.0f} steps a second")
        said.append(left(plan, self.store, self.host, self.workers))
        self.bar.update(
            self.task,
            total=found["total"],
            completed=found["made"],
            description=" · ".join(said),
        )

    def ended(self, run: Planned, said: str) -> None:
        """A run was made, or its process ended otherwise."""
        result = self.store.result(run.id)
        if result is not None:
            self.steps += result["outcome"]["steps"]
            said = f"{said} in {result['cost']['seconds']:.1f} s"
        line = f"{run.id} {run}: {said}"
        if self.bar is not None:
            self.bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            self.stream.write(f"{line}\n")
            self.stream.flush()


def left(plan: Plan, store: Store, host: str, workers: int) -> str:
    """The time until all is made, in words.

    Example:
        >>> duration(5400.0)
        '1 h 30 min'
    """
    seconds = seconds_left(plan, store, host, workers)
    if seconds is None:
        return "time unknown until a run is made on this machine"
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Example:
        >>> duration(4.2), duration(100), duration(36000)
        ('4 s', '2 min', '10 h 0 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
