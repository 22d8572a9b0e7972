"""Progress on standard error, where somebody looks."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from posenc.cli.io.text import Text

# A text this small is done before a bar could be read.
SMALL = 1 << 16


class Progress:
    """Bytes read of a text, stage by stage; silent unless standard error is a terminal.

    Args:
        text: What is read; it reports how far it is.
    """

    def __init__(self, text: Text):
        self.text = text
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty() and self.text.size > SMALL:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description:<10}"),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
            )
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.bar.start()
            self.text.watch = self._moved
        return self

    def stage(self, name: str) -> None:
        """The text is read from its beginning, for another purpose."""
        if self.bar is None:
            return
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(name, total=self.text.size)

    def say(self, line: str) -> None:
        """A line on standard error, above the bar where there is one."""
        if self.bar is not None:
            self.bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def stop(self) -> None:
        """Takes the bar away."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _moved(self, done: int) -> None:
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        self.stop()


class Steps:
    """A few long steps with names: which is at work, on a terminal alone.

    Args:
        doing: What is done with each.
        names: The steps.
    """

    def __init__(self, doing: str, names: Sequence[str]):
        self.doing, self.names = doing, names
        self.shown = sys.stderr.isatty()

    def each(self) -> Iterator[str]:
        """The names in order; the time left is told once a step has been timed."""
        began = time.perf_counter()
        for done, name in enumerate(self.names):
            if self.shown:
                left = (
                    (time.perf_counter() - began) / done * (len(self.names) - done) if done else 0
                )
                about = f", about {left:.0f} s left" if left >= 1 else ""
                place = f"{done + 1} of {len(self.names)}"
                sys.stderr.write(f"\r\x1b[K{self.doing} {name} ({place}{about})")
                sys.stderr.flush()
            yield name

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
