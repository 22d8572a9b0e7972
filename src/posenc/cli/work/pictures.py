"""``posenc heatmap`` and ``curves``: figures in files, and pictures made of characters."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from rich.color import Color, blend_rgb, parse_rgb_hex
from rich.style import Style
from rich.text import Text
from torch import Tensor

from posenc import Rotary, Sinusoidal
from posenc.cli import encodings
from posenc.cli.encodings import Rows, chosen, is_plain, learns, name_of, print_rows, rows_of
from posenc.cli.errors import check_heeded, check_one_of
from posenc.cli.files import check_figure, write_figure
from posenc.cli.printing import console, legend, marked, only_ascii, sparkline

STOPS = [
    parse_rgb_hex(each)
    for each in ("9ed0ff", "3b7fb8", "1e3c5f", "18181c", "692d1e", "d0623e", "ffc9a3")
]
"""From the least over 0 to the most, on a dark ground as on a light one."""

SIGNS = "@=-.+*#"
"""The same without color: seven steps, the middle one around zero."""


def heatmap(asked: Any) -> None:
    """Draws the table, or prints the numbers that would be drawn."""
    check_figure(asked.output, asked.dpi)
    rows, start, length = rows_of(chosen(asked)), asked.start, asked.length
    encoding, is_bias = rows.encoding, rows.counted == "distance"
    check_heeded(asked, head=not is_bias and "of an encoding that is no bias")
    if is_bias:
        rows = encodings.bias_rows(encoding, asked.head, start, length)
    check_one_of("--first-dimension", asked.first_dimension, len(rows.names))
    head = f", head {asked.head}" if is_bias else ""
    trained = ", not trained" if learns(encoding) else ""
    title = f"{name_of(encoding)}{head}: {length} positions{trained}"
    if isinstance(encoding, Sinusoidal) and is_plain(encoding):
        name = f"Sinusoidal, {encoding.convention.name}"
        title = f"{name}: {length} positions, d = {encoding.dim}, n = {encoding.base:g}"
    if asked.output is not None:
        _draw_heatmap(asked, rows, title)
    if asked.format != "text":
        about = {"head": asked.head} if is_bias else {}
        print_rows(asked.format, rows, rows.blocks(start, length), **about, start=start)
    elif asked.output is None:
        _print_heatmap(rows, title, start, length, asked.first_dimension)


def _draw_heatmap(asked: Any, rows: Rows, title: str) -> None:
    from posenc.plots import heatmap
    from posenc.plots.heatmap import MEANS, MOST

    each = -(-asked.length // (MOST if asked.length <= MOST else MEANS))
    parts = rows.between(asked.start, asked.length).split(each)
    values = torch.stack([part.mean(0) for part in parts])
    is_bias = rows.counted == "query"
    how: Any = {"xlabel": "column", "ylabel": "position (token)"}
    if is_bias:
        how = {"xlabel": "key (position)", "ylabel": "query (position)"}
        how["first_column"] = asked.start
    how |= {name: getattr(asked, name) for name in ("start", "theme", "dpi")}
    axes = heatmap(values, each=each, limit=_limit(values, not is_bias), title=title, **how)
    write_figure(axes, asked.output, asked.dpi, asked.format)


def _print_heatmap(rows: Rows, title: str, start: int, length: int, left: int) -> None:
    """Prints the part of a table that fits: two rows a line with color, one without."""
    screen = console()
    color = not (only_ascii(screen) or screen.no_color)
    gutter = len(str(start + length)) + 2 + (start < 0)
    room = max(8, screen.height - 7) * (1 + color) if screen.is_terminal else length
    count, columns = min(length, room), min(len(rows.names) - left, screen.width - gutter - 1)
    # Only what the terminal has room for is computed, however long the table is.
    table = rows.between(start, count)[:, left : left + columns]
    limit = _limit(table, rows.counted == "position")
    screen.print(title)
    first = left + (start if rows.counted == "query" else 0)  # columns of a bias are keys
    screen.print(" " * gutter + _axis(first, columns))
    values = (table / limit).tolist()
    for row in range(0, count, 1 + color):
        line = Text(str(start + row).rjust(gutter - 2) + "  ")
        if color:
            below = values[row + 1] if row + 1 < count else [None] * columns
            for upper, lower in zip(values[row], below, strict=True):
                ground = None if lower is None else _color(lower)
                line.append("▀", Style(color=_color(upper), bgcolor=ground))
        else:
            line.append(marked(values[row], SIGNS))
        screen.print(line)
    blocks = [("█", Style(color=_color(step / 14 - 1))) for step in range(29)]
    scale = blocks if color else [" ".join(SIGNS)]
    screen.print(Text.assemble(f"{-limit:g} ", *scale, f" {limit:+g}"))
    if count < length or columns < len(rows.names):
        screen.print(
            f"rows {start} to {start + count - 1} of {length}, columns {left} to "
            f"{left + columns - 1} of {len(rows.names)}: one cell each; --start and "
            "--first-dimension move on."
        )


def _color(value: float) -> Color:
    """The color of a value in [−1, 1]."""
    place = (min(1.0, max(-1.0, value)) + 1) / 2 * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    return Color.from_triplet(blend_rgb(STOPS[low], STOPS[low + 1], place - low))


def _axis(first: int, columns: int) -> str:
    """The numbers of some columns, counted from ``first`` on, each above its own."""
    digits = len(str(first + columns))
    step = digits + 1 if columns <= 12 else 10 * (1 + digits // 10)
    begin = first if columns <= 12 else -(-first // step) * step
    places = range(begin, max(begin + 1, first + columns - digits + 1), step)
    return " " * (begin - first) + "".join(str(place).ljust(step) for place in places).rstrip()


def curves(asked: Any) -> None:
    """Draws columns of the table over the position, or prints their numbers."""
    check_figure(asked.output, asked.dpi)
    rows = rows_of(chosen(asked))
    width, start, length = len(rows.names), asked.start, asked.length
    if start is None:
        start = -(length // 2) if rows.counted == "distance" else 0
    picked = asked.dimensions or range(0, width, 1 if width <= 8 else -(-width // 12) * 2)
    for index in picked:
        check_one_of("one of --dimensions", index, width)
    labels = [_label(rows, index) for index in picked]
    if asked.output is not None:
        _draw_curves(asked, rows, start, picked, labels)
    if asked.format != "text":
        print_rows(asked.format, rows, rows.blocks(start, length), picked, start=start)
    elif asked.output is None:
        _print_curves(rows, picked, labels, start, length)


def _label(rows: Rows, index: int) -> str:
    """What a curve is: its column, and the wavelength of a sine or cosine in positions."""
    turn, encoding = math.inf, rows.encoding
    if isinstance(encoding, Sinusoidal):
        frequency = encoding.convention.channel(index, encoding.dim, encoding.base).frequency
        turn = math.tau / frequency if frequency else math.inf
    elif isinstance(encoding, Rotary):
        turn = encoding.frequencies.wavelengths()[index // 2]
    return rows.names[index] + (f", wavelength {turn:.4g}" if math.isfinite(turn) else "")


def _draw_curves(
    asked: Any, rows: Rows, start: int, picked: Sequence[int], labels: list[str]
) -> None:
    from posenc.plots import bias, curves

    values, drawn = rows.between(start, asked.length), learns(rows.encoding)
    how: Any = {"title": name_of(rows.encoding), "theme": asked.theme}
    if rows.counted == "distance":
        distances = range(start, start + asked.length)
        axes = bias(values[:, list(picked)].mT, distances, heads=picked, random=drawn, **how)
    else:
        how["title"] += ", not trained" if drawn else ""
        axes = curves(values, start=start, dimensions=picked, labels=labels, **how)
    write_figure(axes, asked.output, asked.dpi, asked.format)


def _print_curves(
    rows: Rows, picked: Sequence[int], labels: Sequence[str], start: int, length: int
) -> None:
    """Prints a line of bars for each column, a bar for each row that fits."""
    screen, room = console(), max(map(len, [*labels, rows.counted])) + 2
    count = min(length, max(8, screen.width - room - 1))
    table = rows.between(start, count)[:, list(picked)]
    limit = _limit(table, rows.counted == "position")
    for values, label in zip((table / limit).mT.tolist(), labels, strict=True):
        screen.print(label.ljust(room) + sparkline(values, screen))
    screen.print(f"{rows.counted.ljust(room)}{start} to {start + count - 1}")
    screen.print(legend(screen, f"{-limit:g}", f"{limit:+g}"))
    if count < length:
        screen.print(f"{count} of {length} {rows.counted}s fit; --start moves on.")
    encodings.print_note(rows.encoding)


def _limit(table: Tensor, is_wave: bool) -> float:
    """Where colors end: at the largest number, or at 1 for waves, which come near it."""
    largest = table[table.isfinite()].abs().max().item() or 1.0
    return max(1.0, largest) if is_wave and largest > 0.5 else largest
