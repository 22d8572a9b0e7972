"""Scores over the length of rows, every seed a dot."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, dress, key, look, new_axes, numbers, told_apart

Scores = Mapping[str, Mapping[float, Sequence[float]]]
Middles = Mapping[str, Mapping[float, tuple[float, float, float]]]

SPREAD = 0.06  # octaves between the encodings of one length, which stand side by side
ASIDE = 0.025  # octaves between seeds and their interval


def length_curve(
    scores: Scores,
    middles: Middles,
    *,
    measure: str = "accuracy",
    chance: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws scores over length ÷ trained length: a dot a seed, a line and interval through them.

    Args:
        scores: By encoding and length ratio, one number a seed.
        middles: By encoding and length ratio: value, lower and upper end of its interval.
        measure: What a score is.
        chance: The score of one who guesses; a dotted line.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There is nothing to draw, or a score is not finite.

    Example:
        >>> ax = length_curve({"mine": {1: [0.9, 1.0], 8: [0.5, 0.7]}},
        ...     {"mine": {1: (0.95, 0.9, 1.0), 8: (0.6, 0.5, 0.7)}})
        >>> ax.get_xlabel(), len(ax.collections[0].get_offsets())
        ('length ÷ trained length', 4)
    """
    if not any(scores.values()):
        raise ValueError("scores is empty; give at least one encoding with a length and its seeds.")
    colors = look(theme)
    ax = new_axes(7.0, 4.2, colors) if ax is None else ax
    for turn, (name, by_ratio) in enumerate(scores.items()):
        shift = 2 ** (SPREAD * (turn - (len(scores) - 1) / 2))
        _draw(ax, name, by_ratio, middles.get(name, {}), shift, told_apart(turn, colors))
    ratios = sorted({ratio for by_ratio in scores.values() for ratio in by_ratio})
    ax.set_xscale("log", base=2)
    ax.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    ax.minorticks_off()
    if chance is not None:
        ax.axhline(chance, color=colors.ink, linewidth=0.8, linestyle=":", label="chance", zorder=0)
    ax.grid(axis="y", color=colors.faint, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("length ÷ trained length")
    ax.set_ylabel(measure)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    dress(ax, colors)
    return ax


def _draw(
    ax: Axes,
    name: str,
    by_ratio: Mapping[float, Sequence[float]],
    middle: Mapping[float, tuple[float, float, float]],
    shift: float,
    look_of: dict[str, Any],
) -> None:
    # A little to the left, so that the interval does not cover them.
    points = [
        (ratio * shift * 2**-ASIDE, each)
        for ratio, seeds in sorted(by_ratio.items())
        for each in seeds
    ]
    x, y = numbers(points, f"scores of {name}", 2).T
    ax.scatter(
        x, y, s=16, alpha=0.6, color=look_of["color"], marker=look_of["marker"], linewidths=0
    )
    if not middle:
        return
    ratios = np.array(sorted(middle)) * shift
    value, low, high = np.array([middle[ratio] for ratio in sorted(middle)]).T
    ends = np.stack((value - low, high - value)).clip(min=0)
    ax.errorbar(
        ratios, value, yerr=ends, label=name, markersize=5, linewidth=1.5, capsize=2, **look_of
    )  # fmt: skip
