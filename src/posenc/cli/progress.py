"""A progress bar on standard error, where somebody looks."""

import sys
from typing import Any

from posenc.cli.text import Text


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
        # A text this small is done before a bar could be read.
        if sys.stderr.isatty() and self.text.size > 1 << 16:
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
