"""Numbers as curves: over the position, the distance of two, or the size of a problem."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import MARKS, Shown, in_float64, numbers, opened

# Up to this many numbers each one has a dot: an encoding lives at whole positions only.
DOTTED = 120
STEPS = 8

LEVELS = {"one rounding of float32": 3e-8, "seen in attention scores": 1e-3}


def curves(
    table: ArrayLike,
    *,
    dimensions: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    start: int = 0,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws columns of ``table`` over the position: dots at whole positions, smooth lines between.

    The frame goes from −1 to 1, further where a curve does, or to the largest number below .5.

    Args:
        table: [positions, dim].
        dimensions: Which columns; at most six by default, spread over the width.
        labels: A name for each, in the legend.
        start: The position of the first row.

    Example:
        >>> ax = curves([[0.0, 1.0], [0.84, 0.54]], dimensions=[0])
        >>> ax.get_legend_handles_labels()[1]
        ['dimension 0']
    """
    values = in_float64(table)
    width = values.shape[1]
    # An even step, so that those of a paired encoding are all sines or all cosines.
    step = 1 if width <= 6 else -(-width // 12) * 2
    chosen = list(range(0, width, step) if dimensions is None else dimensions)
    names = [f"dimension {index}" for index in chosen] if labels is None else labels
    ax, colors, drawing = opened(9.0, 4.5, **shown)
    for turn, (index, name) in enumerate(zip(chosen, names, strict=True)):
        # Where colors repeat, the line differs: color never carries the meaning alone.
        _trace(ax, start, values[:, index], label=name, **colors.told_apart(turn))
    far = max(float(np.nanmax(np.abs(in_float64(line.get_ydata())))) for line in ax.lines)
    edge = 1.08 * (max(far, 1.0) if far > 0.5 else far)
    ax.set_ylim(-edge, edge)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    drawing.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing.finished("position (token)", "value")


def _trace(ax: Axes, start: int, values: np.ndarray, **style: Any) -> None:
    """Draws numbers at start, start + 1, …: with a dot each and smooth between, if they are few."""
    values = fine = np.where(np.isfinite(values), values, np.nan)
    if len(values) <= DOTTED:
        fine = _smooth(values)
        style |= {"marker": "o", "markevery": STEPS, "markersize": 3}
    ax.plot(start + np.linspace(0, len(values) - 1, len(fine)), fine, linewidth=1.2, **style)


def _smooth(values: np.ndarray) -> np.ndarray:
    """The cubic spline through numbers, at ``STEPS`` points each.

    Lines are straight where a number is missing, or where neighbors tell nothing of each other.
    """
    bends, one = np.zeros_like(values), np.eye(len(values))
    # Of a wave of one radian a position the ratio is .92, of random numbers 2.4; of NaN it is none.
    if len(values) > 3 and np.diff(values, 2).std() < 1.5 * values.std():
        # Second derivatives m: m[i-1] + 4 m[i] + m[i+1] = 6 Δ²v[i]; straight on at the ends.
        matrix = 4 * one + np.roll(one, 1, axis=0) + np.roll(one, -1, axis=0)
        matrix[0], matrix[-1] = one[0] - 2 * one[1] + one[2], one[-1] - 2 * one[-2] + one[-3]
        bends[1:-1] = 6 * np.diff(values, 2)
        bends = np.linalg.solve(matrix, bends)
    there = np.arange(STEPS) / STEPS
    here = 1 - there
    (a, m), (b, n) = ((values[s, None], bends[s, None]) for s in (slice(-1), slice(1, None)))
    pieces = here * a + there * b + ((here**3 - here) * m + (there**3 - there) * n) / 6
    return np.append(pieces, values[-1])


def distance_profile(
    products: Mapping[str, ArrayLike] | ArrayLike,
    *,
    first: int = 0,
    quantity: str = "dot product PE(p) · PE(p + distance)",
    **shown: Unpack[Shown],
) -> Axes:
    """Draws products over the distance of two positions; it falls, and rises again.

    Args:
        products: One number a distance; several by name.
        first: The distance of the first number, in positions.
        quantity: What is drawn.

    Example:
        >>> ax = distance_profile([2.0, 1.5, 0.6])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('distance query − key (positions)', 'dot product PE(p) · PE(p + distance)')
    """
    named = products if isinstance(products, Mapping) else {"": products}
    ax, colors, drawing = opened(7.0, 4.0, **shown)
    for turn, (name, values) in enumerate(named.items()):
        row = numbers(values, name or "products", 1)
        _trace(ax, first, row, label=name or None, **colors.dashed(turn))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    if isinstance(products, Mapping):
        drawing.legend()
    return drawing.finished("distance query − key (positions)", quantity)


def rotary_score(
    scores: Mapping[str, ArrayLike] | ArrayLike, *, first: int = 0, **shown: Unpack[Shown]
) -> Axes:
    """Draws R(distance) q · k: what rotary attention sees of two vectors, the query after the key.

    Arguments are those of ``distance_profile``.

    Example:
        >>> rotary_score([1.0, 0.5]).get_ylabel()
        'score R(distance) q · k'
    """
    return distance_profile(scores, first=first, quantity="score R(distance) q · k", **shown)


def growth(
    costs: Mapping[str, Mapping[float, float]],
    *,
    against: str | None = None,
    dashed: Collection[str] = (),
    xlabel: str = "rows",
    ylabel: str = "time (ms)",
    **shown: Unpack[Shown],
) -> Axes:
    """Draws what each contender costs over the size, both axes logarithmic.

    On such axes a power of the size is a straight line: its slope is the exponent.

    Args:
        costs: By contender, by size; all above zero.
        against: The contender that the others are compared with: a dotted line.
        dashed: Contenders with dashed lines, such as those of others.
        xlabel: What the size counts.
        ylabel: What is drawn, with its unit.

    Example:
        >>> times = {"mine": {512: 1.0, 1024: 2.1}, "copy": {512: 0.5, 1024: 1.0}}
        >>> ax = growth(times, against="copy")
        >>> ax.get_legend_handles_labels()[1], ax.get_xscale(), ax.get_yscale()
        (['mine', 'copy'], 'log', 'log')
    """
    ax, colors, drawing = opened(7.0, 4.2, **shown)
    every, turn = [], 0
    for name, by_size in costs.items():
        sizes = sorted(by_size)
        values = numbers([by_size[size] for size in sizes], f"costs of {name}", 1)
        color, line, marker = colors.ink, ":", "."
        if name != against:
            color, marker = colors.line(turn), MARKS[turn % 8]
            line, turn = "--" if name in dashed else "-", turn + 1
        style = {"color": color, "marker": marker, "linewidth": 1.6, "markersize": 4.5}
        ax.plot(sizes, values, line, label=name, **style)
        every += values.tolist()
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    if max(every) < 1e4 * min(every):
        ax.yaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10; powers of ten where there are many
        ax.yaxis.set_minor_formatter("" if max(every) > 10 * min(every) else "{x:g}")
    ax.grid(color=colors.faint, linewidth=0.6)
    drawing.legend(fontsize="small")
    return drawing.finished(xlabel, ylabel)


def error_curve(errors: Mapping[str, Mapping[int, float]], **shown: Unpack[Shown]) -> Axes:
    """Draws largest errors over the position, both on logarithmic axes.

    Two lines give the scale: what one rounding of float32 costs, and what attention scores show.
    An error of 0 stands at 1e-17; position 0 has no place, and is left out.

    Args:
        errors: For each implementation the largest absolute error by position.

    Example:
        >>> ax = error_curve({"mine": {100: 4e-6, 1000: 4e-5}})
        >>> ax.get_xscale(), ax.get_legend_handles_labels()[1]
        ('log', ['mine'])
    """
    ax, colors, drawing = opened(7.0, 4.0, **shown)
    for turn, (name, by_position) in enumerate(errors.items()):
        places = sorted(set(by_position) - {0})
        values = numbers([by_position[p] for p in places], f"errors of {name}", 1).clip(min=1e-17)
        style = {"color": colors.line(turn), "linewidth": 1.5, "markersize": 4}
        ax.plot(places, values, "o-", label=name, **style)
    ax.set(xscale="log", yscale="log")
    for words, level in LEVELS.items():
        ax.axhline(level, color=colors.faint, linewidth=1.0, zorder=0)
        across = ax.get_yaxis_transform()
        drawing.write(0.99, level, words, ha="right", va="bottom", transform=across)
    drawing.legend(loc="upper left")
    return drawing.finished("position (token)", "largest error")
