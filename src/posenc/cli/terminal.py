"""What a terminal shows: tables that fit its width, numbers, and color where it is wanted."""

import os
import sys
from collections.abc import Sequence
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table

# Where nobody looks, lines are as long as they need to be.
UNBOUNDED = 100_000


class Screen(Console):
    """A console that leaves a broken pipe to the caller."""

    def on_broken_pipe(self) -> None:
        """Raises what rich has caught, where rich would end the process itself."""
        raise


def console(stream: IO[str] | None = None) -> Console:
    """A console on ``stream``: as wide as the terminal, or plain and unbounded in a pipe."""
    stream = sys.stdout if stream is None else stream
    return Screen(
        file=stream,
        width=None if stream and stream.isatty() else UNBOUNDED,
        highlight=False,
        soft_wrap=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def colored(screen: Console) -> bool:
    """Whether color is shown: on a terminal, unless NO_COLOR is set."""
    return screen.is_terminal and not screen.no_color and not os.environ.get("NO_COLOR")


def plain(screen: Console) -> bool:
    """Whether only ASCII is sure to arrive: in a pipe, or where the encoding has no more."""
    return not screen.is_terminal or not screen.encoding.lower().startswith("utf")


def number(value: float, digits: int = 4) -> str:
    """A number in a fixed width, with a sign only where it is negative.

    Example:
        >>> number(0.5), number(-0.5), number(-1e-9), number(12345.678)
        (' 0.5000', '-0.5000', ' 0.0000', ' 12345.6780')
    """
    text = f"{value: .{digits}f}"
    return text if text.strip("-0. ") else f" {0:.{digits}f}"


def grid(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    screen: Console,
    left: Sequence[int] = (),
) -> Table | str:
    """A table of text; columns stand to the right but for those in ``left``."""
    if plain(screen):
        return _plain_grid([headers, *rows], left)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for index, header in enumerate(headers):
        side = "left" if index in left else "right"
        table.add_column(header, justify=side, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _plain_grid(rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def shortened(cells: Sequence[str], most: int) -> list[str]:
    """``cells``, or the first and last of them around an ellipsis where they are too many.

    Example:
        >>> shortened(["a", "b", "c", "d", "e"], 4)
        ['a', 'b', '…', 'e']
    """
    if len(cells) <= most:
        return list(cells)
    return [*cells[: max(1, most - 2)], "…", cells[-1]]
