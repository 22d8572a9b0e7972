"""The screen that a command prints on, and tables on it."""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

UNBOUNDED = 100_000
"""Where nobody looks, lines are as long as they need to be."""

USUAL = 80
"""What is laid out for a screen is laid out for one of this width in a pipe."""


class Screen(Console):
    """A console that leaves a broken pipe to the caller."""

    def on_broken_pipe(self) -> None:
        """Raises what rich has caught, where rich would end the process itself."""
        raise

    @property
    def room(self) -> int:
        """Columns to lay out for."""
        return self.width if self.is_terminal else USUAL

    @property
    def plain(self) -> bool:
        """Whether only ASCII is sure to arrive: in a pipe, or where the encoding has no more."""
        return not self.is_terminal or not self.encoding.lower().startswith("utf")

    def grid(
        self, headers: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()
    ) -> None:
        """Prints columns, to the right but for those in ``left``."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
        for index, header in enumerate(headers):
            table.add_column(header, justify="left" if index in left else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self.print(table)


def console() -> Screen:
    """A console on standard output: as wide as the terminal, or plain and unbounded in a pipe."""
    return Screen(
        width=None if sys.stdout.isatty() else UNBOUNDED,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def print_folded(lines: Iterable[str]) -> None:
    """Prints lines in 98 characters, what follows deeper; code is copied, so it stays as it is."""
    for line in lines:
        deeper = " " * (len(line) - len(line.lstrip()) + 2)
        how: Any = {"break_long_words": False, "break_on_hyphens": False}
        is_code = line.lstrip().startswith(">>>")
        print(line if is_code else textwrap.fill(line, 98, subsequent_indent=deeper, **how))


BARS, STEPS = "▁▂▃▄▅▆▇█", "_.-~^"


def sparkline(values: Sequence[float], screen: Screen) -> str:
    """A mark for each value: the lowest at −1, the highest at +1."""
    marks = STEPS if screen.plain else BARS
    last = len(marks) - 1
    return "".join(marks[min(last, max(0, int((v + 1) / 2 * len(marks))))] for v in values)


def legend(screen: Screen, low: str = "-1", high: str = "+1") -> str:
    """What the lowest and the highest mark of a sparkline stand for."""
    lowest, highest = sparkline([-1, 1], screen)
    return f"{lowest} is {low}, {highest} is {high}."


def number(value: float, digits: int = 4) -> str:
    """A number in a fixed width, with a sign only where it is negative.

    Example:
        >>> number(0.5), number(-0.5), number(-1e-9)
        (' 0.5000', '-0.5000', ' 0.0000')
    """
    text = f"{value: .{digits}f}"
    return text if text.strip("-0. ") else f" {0:.{digits}f}"


def shortened(cells: Sequence[str], most: int) -> list[str]:
    """``cells``, or the first and last of them around an ellipsis where they are too many.

    Example:
        >>> shortened(["a", "b", "c", "d", "e"], 4)
        ['a', 'b', '…', 'e']
    """
    if len(cells) <= most:
        return list(cells)
    return [*cells[: max(1, most - 2)], "…", cells[-1]]
