"""Pairs of channels as hands of clocks, at their true angles."""

from math import atan2, tau

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, finished, numbers, opened, reach, without_frame


def phasors(
    cos: ArrayLike,
    sin: ArrayLike,
    *,
    position: int,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws one clock a pair: the hand points to (cos, sin), counter-clockwise from the right.

    The circle has radius 1; a hand that is longer, by an attention factor, gets the room.

    Args:
        cos: [pairs].
        sin: [pairs], likewise.
        position: The position of the token, for the label.

    Example:
        >>> ax = phasors([1.0, 0.0], [0.0, 1.0], position=0)
        >>> [text.get_text().split() for text in ax.texts]
        [['pair', '0', '0°'], ['pair', '1', '90°']]
    """
    xs, ys = numbers(cos, "cos", 1), numbers(sin, "sin", 1)
    ax, colors = opened(ax, theme, max(4.0, 1.25 * len(xs)), 2.4)
    angles, edge = plt.get_cmap("twilight"), reach(np.hypot(xs, ys))
    for pair, (x, y) in enumerate(zip(xs, ys, strict=True)):
        center, turn = 2.6 * edge * pair, atan2(y, x) / tau % 1.0
        ax.add_patch(Circle((center, 0.0), 1.0, fill=False, edgecolor=colors.faint, linewidth=1.2))
        ax.plot([center, center + 1.0], [0.0, 0.0], color=colors.faint, linewidth=0.8)
        ax.plot([center, center + x], [0.0, y], color=colors.ink, linewidth=2.0)
        ax.plot(center + x, y, "o", color=angles(turn), markeredgecolor=colors.ink, markersize=7)
        ax.text(
            center, -1.25 * edge, f"pair {pair}\n{360 * turn:.0f}°", ha="center", va="top",
            color=colors.ink, fontsize="small",
        )  # fmt: skip
    ax.set_xlim(-1.3 * edge, 2.6 * edge * (len(xs) - 1) + 1.3 * edge)
    ax.set_ylim(-2.2 * edge, 1.2 * edge)
    ax.set_aspect("equal")
    without_frame(ax)
    label = f"angle of each pair at position {position:,} (degrees from cos = 1)"
    return finished(ax, colors, title, label)
