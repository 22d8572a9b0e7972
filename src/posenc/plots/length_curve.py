"""Scores over the length of rows, every seed a dot."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, beside, finished, numbers, opened, told_apart

SPREAD = 0.06  # octaves between the encodings of one length, which stand side by side
ASIDE = 0.025  # octaves between seeds and their interval


def length_curve(
    scores: Mapping[str, Mapping[float, Sequence[float]]],
    middles: Mapping[str, Mapping[float, tuple[float, float, float]]],
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

    Example:
        >>> ax = length_curve({"mine": {1: [0.9, 1.0], 8: [0.5, 0.7]}},
        ...     {"mine": {1: (0.95, 0.9, 1.0), 8: (0.6, 0.5, 0.7)}})
        >>> ax.get_xlabel(), len(ax.collections[0].get_offsets())
        ('length ÷ trained length', 4)
    """
    ax, colors = opened(ax, theme, 7.0, 4.2)
    for turn, (name, by_ratio) in enumerate(scores.items()):
        shift, style = 2 ** (SPREAD * (turn - (len(scores) - 1) / 2)), told_apart(turn, colors)
        points = [(ratio, each) for ratio, seeds in sorted(by_ratio.items()) for each in seeds]
        x, y = numbers(points, f"scores of {name}", 2).T
        dots = {"color": style["color"], "marker": style["marker"]}
        # A little to the left, so that the interval does not cover them.
        ax.scatter(x * shift * 2**-ASIDE, y, s=16, alpha=0.6, linewidths=0, **dots)
        if middle := sorted(middles.get(name, {}).items()):
            value, low, high = np.array([interval for _, interval in middle]).T
            ax.errorbar(
                [ratio * shift for ratio, _ in middle],
                value,
                yerr=np.stack((value - low, high - value)).clip(min=0),
                label=name,
                markersize=5,
                linewidth=1.5,
                capsize=2,
                **style,
            )
    ratios = sorted({ratio for by_ratio in scores.values() for ratio in by_ratio})
    ax.set_xscale("log", base=2)
    ax.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    ax.minorticks_off()
    if chance is not None:
        ax.axhline(chance, color=colors.ink, linewidth=0.8, linestyle=":", label="chance", zorder=0)
    ax.grid(axis="y", color=colors.faint, linewidth=0.6)
    ax.set_axisbelow(True)
    beside(ax)
    return finished(ax, colors, title, "length ÷ trained length", measure)
