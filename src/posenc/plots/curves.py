"""Numbers over the position or the distance: dimensions, dot products, rotary scores."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import DASHES, Shown, dashed, finished, in_float64, key, numbers, opened

# Up to this many numbers each one has a dot: an encoding lives at whole positions only.
DOTTED = 120
STEPS = 8


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
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = curves([[0.0, 1.0], [0.84, 0.54]], dimensions=[0])
        >>> ax.get_legend_handles_labels()[1]
        ['dimension 0']
    """
    values = in_float64(table)
    chosen = list(spread(values.shape[1]) if dimensions is None else dimensions)
    names = [f"dimension {index}" for index in chosen] if labels is None else labels
    ax, colors, title = opened(9.0, 4.5, **shown)
    for turn, (index, name) in enumerate(zip(chosen, names, strict=True)):
        # Where colors repeat, the line differs: color never carries the meaning alone.
        style = {"linestyle": DASHES[turn // len(colors.lines) % 4], "label": name}
        trace(ax, start, values[:, index], color=colors.lines[turn % len(colors.lines)], **style)
    far = max(float(np.nanmax(np.abs(in_float64(line.get_ydata())))) for line in ax.lines)
    edge = 1.08 * (max(far, 1.0) if far > 0.5 else far)
    ax.set_ylim(-edge, edge)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    key(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return finished(ax, colors, title, "position (token)", "value")


def trace(ax: Axes, start: int, values: np.ndarray, **style: Any) -> None:
    """Draws numbers at start, start + 1, …: with a dot each and smooth between, if they are few."""
    values = fine = np.where(np.isfinite(values), values, np.nan)
    if len(values) <= DOTTED:
        fine = smooth(values, STEPS)
        style |= {"marker": "o", "markevery": STEPS, "markersize": 3}
    ax.plot(start + np.linspace(0, len(values) - 1, len(fine)), fine, linewidth=1.2, **style)


def smooth(values: np.ndarray, steps: int) -> np.ndarray:
    """The cubic spline through numbers, at ``steps`` points each.

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
    there = np.arange(steps) / steps
    here = 1 - there
    (a, m), (b, n) = ((values[s, None], bends[s, None]) for s in (slice(-1), slice(1, None)))
    pieces = here * a + there * b + ((here**3 - here) * m + (there**3 - there) * n) / 6
    return np.append(pieces, values[-1])


def spread(width: int, most: int = 6) -> list[int]:
    """At most ``most`` dimensions of ``width``, evenly apart by an even step: all alike."""
    step = 1 if width <= most else -(-width // (2 * most)) * 2
    return list(range(0, width, step))


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
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = distance_profile([2.0, 1.5, 0.6])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('distance query − key (positions)', 'dot product PE(p) · PE(p + distance)')
    """
    named = products if isinstance(products, Mapping) else {"": products}
    ax, colors, title = opened(7.0, 4.0, **shown)
    for turn, (name, values) in enumerate(named.items()):
        row = numbers(values, name or "products", 1)
        trace(ax, first, row, label=name or None, **dashed(turn, colors))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    if isinstance(products, Mapping):
        key(ax)
    return finished(ax, colors, title, "distance query − key (positions)", quantity)


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
