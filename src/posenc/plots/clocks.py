"""Pairs of channels at their true angles: as hands of clocks, and fanned out over timesteps."""

from collections.abc import Sequence
from math import atan2, tau

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, bar, finished, numbers, opened, reach, without_frame

HUB = 0.12
"""Radius of the fastest pair of a fan, of that of the slowest."""


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


def timestep_fan(
    cos: ArrayLike,
    sin: ArrayLike,
    timesteps: Sequence[float] | ArrayLike,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws each timestep as one blade: pair after pair from the middle out, at its angle t · ω.

    The slowest pairs, at the edge, order the whole run; further in a pair turns faster, and tells
    apart what the outer ones have close together. A blade is followed from the edge inward until it
    has gone round once, or is a quarter of a turn and more from one pair to the next: from there on
    angles alone no longer tell which timestep is which.

    Args:
        cos: [timesteps, pairs], from the fastest pair to the slowest.
        sin: Likewise.
        timesteps: t of each row, in any order; it may be fractional.

    Example:
        >>> from posenc import Sinusoidal
        >>> from posenc.positions import Coordinates
        >>> run = [999.5, 500.25, 0.125]
        >>> cos, sin = Sinusoidal(8, convention="timestep").table(Coordinates(run)).chunk(2, dim=-1)
        >>> ax = timestep_fan(cos, sin, run)
        >>> len(ax.lines), ax.get_xlabel()
        (3, '4 pairs, the fastest in the middle; angle t · ω')
    """
    across, up = numbers(cos, "cos", 2), numbers(sin, "sin", 2)
    times = numbers(timesteps, "timesteps", 1)
    ax, colors = opened(ax, theme, 6.4, 5.4)
    radius = np.linspace(HUB, 1.0, across.shape[1])
    ramp = LinearSegmentedColormap.from_list("timesteps", [colors.lines[i] for i in (0, 3, 1)])
    scale = ScalarMappable(Normalize(times.min(), times.max()), ramp)
    for x, y, time in zip(radius * across, radius * up, times, strict=True):
        inner = _followed(x, y)
        ax.plot(x[inner:], y[inner:], "-o", color=scale.to_rgba(time), linewidth=1.1, markersize=2,
                markevery=[0])  # fmt: skip
    edge = 1.05 * reach(radius * np.hypot(across, up))
    ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", xticks=[], yticks=[])
    bar(scale, "timestep t", colors, ax=ax)
    label = f"{across.shape[1]} pairs, the fastest in the middle; angle t · ω"
    return finished(ax, colors, title, label)


def _followed(x: np.ndarray, y: np.ndarray) -> int:
    """The innermost pair to which a blade is followed."""
    angles = np.arctan2(y, x)[::-1]
    steps = (np.diff(angles) + np.pi) % (2 * np.pi) - np.pi
    gone = np.abs(angles[0] + np.cumsum(steps)) >= 2 * np.pi
    ends = np.flatnonzero(gone | (np.abs(steps) >= np.pi / 2 - 1e-9))
    return len(x) - 1 - int(ends[0]) if len(ends) else 0
