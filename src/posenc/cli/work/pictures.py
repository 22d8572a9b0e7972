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
from posenc.cli.encodings import (
    Rows,
    bias_rows,
    chosen,
    described,
    is_plain,
    learns,
    name_of,
    print_note,
    print_rows,
    rows_of,
)
from posenc.cli.errors import check_heeded, check_one_of
from posenc.cli.files import check_figure, write_figure
from posenc.cli.printing import console, legend, only_ascii, sparkline

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
    encoding = chosen(asked)
    rows = rows_of(encoding)
    is_bias = rows.counted == "distance"
    check_heeded(asked, head=not is_bias and "of an encoding that is no bias")
    if is_bias:
        rows = bias_rows(encoding, asked.head, asked.start, asked.length)
    check_one_of("--first-dimension", asked.first_dimension, len(rows.names))
    title = _title(encoding, f", head {asked.head}" * is_bias, asked.length)
    if asked.output is not None:
        _draw_heatmap(asked, rows, title)
    if asked.format != "text":
        about = {**described(encoding), **({"head": asked.head} if is_bias else {})}
        about |= {"start": asked.start}
        print_rows(asked.format, about, rows, rows.blocks(asked.start, asked.length))
    elif asked.output is None:
        _print_heatmap(rows, title, asked.start, asked.length, asked.first_dimension)


def _title(encoding: Any, head: str, length: int) -> str:
    if isinstance(encoding, Sinusoidal) and is_plain(encoding):
        name = f"Sinusoidal, {encoding.convention.name}"
        return f"{name}: {length} positions, d = {encoding.dim}, n = {encoding.base:g}"
    untrained = ", not trained" if learns(encoding) else ""
    return f"{name_of(encoding)}{head}: {length} positions{untrained}"


def _draw_heatmap(asked: Any, rows: Rows, title: str) -> None:
    from posenc.plots import heatmap
    from posenc.plots.heatmap import MEANS, MOST

    each = -(-asked.length // (MOST if asked.length <= MOST else MEANS))
    parts = rows.between(asked.start, asked.length).split(each)
    values = torch.stack([part.mean(0) for part in parts])
    is_bias = rows.counted == "query"
    axes = heatmap(
        values,
        start=asked.start,
        each=each,
        limit=_limit(values, not is_bias),
        xlabel="key (position)" if is_bias else "column",
        ylabel="query (position)" if is_bias else "position (token)",
        first_column=asked.start if is_bias else 0,
        title=title,
        theme=asked.theme,
        dpi=asked.dpi,
    )
    write_figure(axes, asked.output, asked.dpi, asked.format)


def _print_heatmap(rows: Rows, title: str, start: int, length: int, left: int) -> None:
    """Prints the part of a table that fits: two rows a line with color, one without."""
    screen = console()
    color = not (only_ascii(screen) or screen.no_color)
    gutter = len(str(start + length)) + 2 + (start < 0)
    room = max(8, screen.height - 7) * (1 + color) if screen.is_terminal else length
    shown, columns = min(length, room), min(len(rows.names) - left, screen.width - gutter - 1)
    # Only what the terminal has room for is computed, however long the table is.
    table = rows.between(start, shown)[:, left : left + columns]
    limit = _limit(table, rows.counted == "position")
    screen.print(title)
    first = left + (start if rows.counted == "query" else 0)  # columns of a bias are keys
    screen.print(" " * gutter + _axis(first, columns))
    values = (table / limit).tolist()
    for row in range(0, shown, 1 + color):
        line = Text(str(start + row).rjust(gutter - 2) + "  ")
        if color:
            below = values[row + 1] if row + 1 < shown else [None] * columns
            for upper, lower in zip(values[row], below, strict=True):
                ground = None if lower is None else color_of(lower)
                line.append("▀", Style(color=color_of(upper), bgcolor=ground))
        else:
            steps = (min(6, max(0, int((value + 1) / 2 * 7))) for value in values[row])
            line.append("".join(SIGNS[step] for step in steps))
        screen.print(line)
    scale = [("█", Style(color=color_of(step / 14 - 1))) for step in range(29)]
    screen.print(
        Text.assemble(f"{-limit:g} ", *(scale if color else " ".join(SIGNS)), f" {limit:+g}")
    )
    if shown < length or columns < len(rows.names):
        screen.print(
            f"rows {start} to {start + shown - 1} of {length}, columns {left} to "
            f"{left + columns - 1} of {len(rows.names)}: one cell each; --start and "
            "--first-dimension move on."
        )


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
    encoding = chosen(asked)
    rows = rows_of(encoding)
    width, start, length = len(rows.names), asked.start, asked.length
    if start is None:
        start = -(length // 2) if rows.counted == "distance" else 0
    picked = asked.dimensions or range(0, width, 1 if width <= 8 else -(-width // 12) * 2)
    for index in picked:
        check_one_of("one of --dimensions", index, width)
    labels = [_label(encoding, rows, index) for index in picked]
    if asked.output is not None:
        _draw_curves(asked, encoding, rows, start, picked, labels)
    if asked.format != "text":
        about = {**described(encoding), "start": start}
        print_rows(asked.format, about, rows, rows.blocks(start, length), picked)
    elif asked.output is None:
        _print_curves(rows, picked, labels, start, length)
        print_note(encoding)


def _label(encoding: Any, rows: Rows, index: int) -> str:
    """What a curve is: its column, and the wavelength of a sine or cosine in positions."""
    turn = math.inf
    if isinstance(encoding, Sinusoidal):
        frequency = encoding.convention.channel(index, encoding.dim, encoding.base).frequency
        turn = math.tau / frequency if frequency else math.inf
    elif isinstance(encoding, Rotary):
        turn = encoding.frequencies.wavelengths()[index // 2]
    return rows.names[index] + (f", wavelength {turn:.4g}" if math.isfinite(turn) else "")


def _draw_curves(
    asked: Any, encoding: Any, rows: Rows, start: int, picked: Sequence[int], labels: list[str]
) -> None:
    from posenc.plots import bias, curves

    values, name, drawn = rows.between(start, asked.length), name_of(encoding), learns(encoding)
    if rows.counted == "distance":
        profile, distances = values[:, list(picked)].mT, range(start, start + asked.length)
        how = {"heads": picked, "random": drawn, "title": name, "theme": asked.theme}
        axes = bias(profile, distances, **how)
    else:
        title = f"{name}, not trained" if drawn else name
        how = {"dimensions": picked, "labels": labels, "title": title, "theme": asked.theme}
        axes = curves(values, start=start, **how)
    write_figure(axes, asked.output, asked.dpi, asked.format)


def _print_curves(
    rows: Rows, chosen: Sequence[int], labels: Sequence[str], start: int, length: int
) -> None:
    """Prints a line of bars for each chosen column, a bar for each row that fits."""
    screen, room = console(), max(map(len, [*labels, rows.counted])) + 2
    shown = min(length, max(8, screen.width - room - 1))
    table = rows.between(start, shown)[:, list(chosen)]
    limit = _limit(table, rows.counted == "position")
    for values, label in zip((table / limit).mT.tolist(), labels, strict=True):
        screen.print(label.ljust(room) + sparkline(values, screen))
    screen.print(f"{rows.counted.ljust(room)}{start} to {start + shown - 1}")
    screen.print(legend(screen, f"{-limit:g}", f"{limit:+g}"))
    if shown < length:
        screen.print(f"{shown} of {length} {rows.counted}s fit; --start moves on.")


def color_of(value: float) -> Color:
    """The color of a value in [−1, 1]."""
    place = (min(1.0, max(-1.0, value)) + 1) / 2 * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    return Color.from_triplet(blend_rgb(STOPS[low], STOPS[low + 1], place - low))


def _limit(table: Tensor, is_wave: bool) -> float:
    """Where colors end: at the largest number, or at 1 for waves, which come near it."""
    largest = table[table.isfinite()].abs().max().item() or 1.0
    return max(1.0, largest) if is_wave and largest > 0.5 else largest
