"""Pictures made of characters: colored half blocks, sparklines, and plain signs without color."""

import math
from collections.abc import Sequence

from rich.color import Color
from rich.style import Style
from rich.text import Text
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.curves import Curves
from posenc.cli.heatmap import Heatmap
from posenc.cli.terminal import colored, console, plain
from posenc.positions import consecutive as from_start

# From −1 over 0 to +1, on a dark ground as on a light one.
STOPS = (
    (158, 208, 255),
    (59, 127, 184),
    (30, 60, 95),
    (24, 24, 28),
    (105, 45, 30),
    (208, 98, 62),
    (255, 201, 163),
)
SIGNS = "@=-.+*#"
BARS = "▁▂▃▄▅▆▇█"
STEPS = "_.-~^"


def heatmap(encoding: Sinusoidal, arguments: Heatmap) -> None:
    """Prints the part of the table that fits: two positions a line with color, one without."""
    screen = console()
    color = colored(screen) and not plain(screen)
    width, height = (screen.width, screen.height) if screen.is_terminal else (120, 10_000)
    gutter = len(str(arguments.start + arguments.length)) + 2
    room = max(8, (height - 7) * (2 if color else 1))
    rows = min(arguments.length, room)
    left = arguments.first_dimension
    columns = min(arguments.dim - left, max(8, width - gutter - 1))
    table = encoding.table(from_start(rows, start=arguments.start))[:, left : left + columns]
    screen.print(
        f"positions down, dimensions across ({encoding.convention.name}, n = {arguments.base:g})"
    )
    screen.print(_axis(left, columns, gutter))
    for line in (
        _colored_lines(table, arguments.start, gutter)
        if color
        else _plain_lines(table, arguments.start, gutter)
    ):
        screen.print(line)
    screen.print(_legend(color))
    if rows < arguments.length or columns < arguments.dim:
        first = arguments.start
        screen.print(
            f"positions {first} to {first + rows - 1} of {arguments.length}, dimensions {left} to "
            f"{left + columns - 1} of {arguments.dim}: one cell each; --start and "
            "--first-dimension move on."
        )


def curves(
    encoding: Sinusoidal, arguments: Curves, chosen: Sequence[int], labels: Sequence[str]
) -> None:
    """Prints a line of bars for each dimension, a bar for each position that fits."""
    screen = console()
    marks = STEPS if plain(screen) else BARS
    name_width = max(map(len, labels)) + 2
    width = screen.width if screen.is_terminal else 120
    shown = min(arguments.length, max(8, width - name_width - 1))
    table = encoding.table(from_start(shown, start=arguments.start))
    for index, label in zip(chosen, labels, strict=True):
        screen.print(label.ljust(name_width) + sparkline(table[:, index].tolist(), marks))
    first, last = str(arguments.start), str(arguments.start + shown - 1)
    screen.print("position".ljust(name_width) + first.ljust(shown - len(last)) + last)
    screen.print(f"{marks[0]} is -1, {marks[-1]} is +1; wavelengths in positions.")
    if shown < arguments.length:
        screen.print(f"{shown} of {arguments.length} positions fit; --start moves on.")


def sparkline(values: Sequence[float], marks: str = BARS) -> str:
    """A mark for each value: the lowest at −1, the highest at +1.

    Example:
        >>> sparkline([-1.0, 0.0, 1.0], "abc")
        'abc'
    """
    return "".join(marks[min(len(marks) - 1, int((v + 1) / 2 * len(marks)))] for v in values)


def color_of(value: float) -> Color:
    """The color of a value in [−1, 1].

    Example:
        >>> color_of(0.0).triplet.hex
        '#18181c'
    """
    place = (min(1.0, max(-1.0, value)) + 1) / 2 * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    share = place - low
    mixed = (round(a + (b - a) * share) for a, b in zip(STOPS[low], STOPS[low + 1], strict=True))
    return Color.from_rgb(*mixed)


def sign_of(value: float) -> str:
    """The character of a value in [−1, 1]: seven steps, the middle one around zero.

    Example:
        >>> "".join(map(sign_of, (-1.0, -0.5, 0.0, 0.5, 1.0)))
        '@=.*#'
    """
    return SIGNS[min(6, int((value + 1) / 2 * 7))]


def _colored_lines(table: Tensor, start: int, gutter: int) -> list[Text]:
    values, lines = table.tolist(), []
    for row in range(0, len(values), 2):
        line = Text(str(start + row).rjust(gutter - 2) + "  ")
        below = values[row + 1] if row + 1 < len(values) else None
        for column, value in enumerate(values[row]):
            ground = None if below is None else color_of(below[column])
            line.append("▀", Style(color=color_of(value), bgcolor=ground))
        lines.append(line)
    return lines


def _plain_lines(table: Tensor, start: int, gutter: int) -> list[str]:
    return [
        str(start + row).rjust(gutter - 2) + "  " + "".join(map(sign_of, values))
        for row, values in enumerate(table.tolist())
    ]


def _axis(left: int, columns: int, gutter: int) -> str:
    """The numbers of the dimensions, each above its own column."""
    step = 10 if columns > 12 else 2
    line = " " * gutter
    for index in range(-(-left // step) * step, left + columns, step):
        line = line.ljust(gutter + index - left) + str(index)
    return line


def _legend(color: bool) -> Text:
    legend = Text("-1 ")
    if not color:
        return legend.append(" ".join(SIGNS)).append(" +1")
    for step in range(29):
        legend.append("█", Style(color=color_of(math.fsum((-1, step / 14)))))
    return legend.append(" +1")
