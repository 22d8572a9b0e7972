"""Pictures made of characters: colored half blocks, curves, and plain signs without color."""

from collections.abc import Sequence

from rich.color import Color
from rich.style import Style
from rich.text import Text
from torch import Tensor

from posenc.cli.render.screen import console, legend, sparkline
from posenc.cli.rows import Rows

STOPS = (
    (158, 208, 255), (59, 127, 184), (30, 60, 95), (24, 24, 28), (105, 45, 30), (208, 98, 62),
    (255, 201, 163),
)  # fmt: skip
"""From the least over 0 to the most, on a dark ground as on a light one."""

SIGNS = "@=-.+*#"
"""The same without color: seven steps, the middle one around zero."""


def heatmap(rows: Rows, title: str, start: int, length: int, left: int) -> None:
    """Prints the part of a table that fits: two rows a line with color, one without."""
    screen = console()
    color = not (screen.plain or screen.no_color)
    width, height = (screen.width, screen.height) if screen.is_terminal else (120, 10_000)
    gutter = max(len(str(start)), len(str(start + length))) + 2
    shown = min(length, max(8, (height - 7) * (2 if color else 1)))
    columns = min(len(rows.columns) - left, max(8, width - gutter - 1))
    # Only what the terminal has room for is computed, however long the table is.
    table = rows.between(start, shown)[:, left : left + columns]
    limit = reached(table, rows.counted == "position")
    first = left + (start if rows.counted == "query" else 0)  # columns of a bias are keys
    screen.print(title)
    screen.print(_axis(first, columns, gutter, width))
    values = (table / limit).tolist()
    for row in range(0, shown, 2 if color else 1):
        line = Text(str(start + row).rjust(gutter - 2) + "  ")
        for column, value in enumerate(values[row]):
            if color:
                below = color_of(values[row + 1][column]) if row + 1 < shown else None
                line.append("▀", Style(color=color_of(value), bgcolor=below))
            else:
                line.append(SIGNS[min(6, max(0, int((value + 1) / 2 * 7)))])
        screen.print(line)
    legend = Text(f"{-limit:g} ")
    for step in range(29 if color else 1):
        style = Style(color=color_of(step / 14 - 1)) if color else Style()
        legend.append("█" if color else " ".join(SIGNS), style)
    screen.print(legend.append(f" {limit:+g}"))
    if shown < length or columns < len(rows.columns):
        screen.print(
            f"rows {start} to {start + shown - 1} of {length}, columns {left} to "
            f"{left + columns - 1} of {len(rows.columns)}: one cell each; --start and "
            "--first-dimension move on."
        )


def curves(
    rows: Rows, chosen: Sequence[int], labels: Sequence[str], start: int, length: int
) -> None:
    """Prints a line of bars for each chosen column, a bar for each row that fits."""
    screen = console()
    name_width = max(map(len, [*labels, rows.counted])) + 2
    width = screen.width if screen.is_terminal else 120
    shown = min(length, max(8, width - name_width - 1))
    table = rows.between(start, shown)[:, list(chosen)]
    limit = reached(table, rows.counted == "position")
    for values, label in zip((table / limit).mT.tolist(), labels, strict=True):
        screen.print(label.ljust(name_width) + sparkline(values, screen))
    last = str(start + shown - 1)
    ends = str(start).ljust(shown - len(last)) + last
    if len(str(start)) + len(last) >= shown:  # no room to stand below the marks that they name
        ends = f"{start} to {last}"
    screen.print(rows.counted.ljust(name_width) + ends)
    screen.print(legend(screen, f"{-limit:g}", f"{limit:+g}"))
    if shown < length:
        screen.print(f"{shown} of {length} {rows.counted}s fit; --start moves on.")


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


def reached(table: Tensor, is_wave: bool) -> float:
    """Where colors end: at the largest number, or at 1 for waves, which come near it."""
    largest = table[table.isfinite()].abs().max().item() or 1.0
    return max(1.0, largest) if is_wave and largest > 0.5 else largest


def _axis(first: int, columns: int, gutter: int, width: int) -> str:
    """The numbers of the columns, counted from ``first`` on, each above its own within a line."""
    digits = max(len(str(first)), len(str(first + columns)))
    step = 10 * (1 + digits // 10) if columns > 12 else digits + 1
    line = " " * gutter
    for number in range(-(-first // step) * step if columns > 12 else first, first + columns, step):
        longer = line.ljust(gutter + number - first) + str(number)
        line = longer if len(longer) <= width else line
    return line
