"""Numbers and words in columns, as wide as the screen."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

GAP = 2


def number(value: float, digits: int = 4) -> str:
    """A number in a fixed width, with a sign only where it is negative.

    Example:
        >>> number(0.5), number(-0.5), number(-1e-9), number(12345.678)
        (' 0.5000', '-0.5000', ' 0.0000', ' 12345.6780')
    """
    text = f"{value: .{digits}f}"
    return text if text.strip("-0. ") else f" {0:.{digits}f}"


def print_grid(
    screen: Console,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (),
) -> None:
    """Prints a table of text; columns stand to the right but for those in ``left``."""
    head, *body = grid([headers, *rows], left)
    screen.print(head, style="bold")
    for line in body:
        screen.print(line)


def grid(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Rows of text as lines, each column as wide as its widest cell on the screen.

    Example:
        >>> grid([["", "a"], ["你", "-1"]], left=[0])
        ['     a', '你  -1']
    """
    widths = widths_of(rows)
    return [line(row, widths, left) for row in rows]


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """How wide each column is on the screen."""
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def line(cells: Sequence[str], widths: Sequence[int], left: Sequence[int] = ()) -> str:
    """One row of a grid."""
    padded = (
        _padded(cell, width, index in left)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=False))
    )
    return (" " * GAP).join(padded).rstrip()


def _padded(cell: str, width: int, left: bool) -> str:
    blank = " " * (width - cell_len(cell))
    return cell + blank if left else blank + cell


def shortened(cells: Sequence[str], most: int) -> list[str]:
    """``cells``, or the first and last of them around an ellipsis where they are too many.

    Example:
        >>> shortened(["a", "b", "c", "d", "e"], 4)
        ['a', 'b', '…', 'e']
    """
    if len(cells) <= most:
        return list(cells)
    return [*cells[: max(1, most - 2)], "…", cells[-1]]


def fitting(widths: Sequence[int], room: int) -> int:
    """How many of the first columns fit into ``room``, an ellipsis beside them included.

    Example:
        >>> fitting([8, 7, 7], 30), fitting([8, 7, 7, 7], 30), fitting([50], 30)
        (3, 3, 1)
    """
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        return len(widths)
    taken = 0
    for count, width in enumerate(widths):
        taken += width + GAP
        if taken + 1 > room:
            return max(1, count)
    return len(widths)
