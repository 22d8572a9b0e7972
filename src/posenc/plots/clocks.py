"""Pairs of channels at their angles: hands of clocks, fans of timesteps, directions of a plane."""

from collections.abc import Mapping, Sequence
from math import atan2, tau
from typing import Unpack

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from posenc.plots.style import MARKS, Drawing, Shown, in_float64, numbers, opened, reach

# Radius of the fastest pair of a fan, of that of the slowest.
HUB = 0.12
# Where the slowest direction stands, of the radius of the fastest: the middle would hide it.
INNERMOST = 0.25


def phasors(cos: ArrayLike, sin: ArrayLike, *, position: int, **shown: Unpack[Shown]) -> Axes:
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
    ax, colors, drawing = opened(max(4.0, 1.25 * len(xs)), 2.4, **shown)
    angles, edge = plt.get_cmap("twilight"), reach(np.hypot(xs, ys))
    for pair, (x, y) in enumerate(zip(xs, ys, strict=True)):
        center, turn = 2.6 * edge * pair, atan2(y, x) / tau % 1.0
        ax.add_patch(Circle((center, 0.0), 1.0, fill=False, edgecolor=colors.faint, linewidth=1.2))
        ax.plot([center, center + 1.0], [0.0, 0.0], color=colors.faint, linewidth=0.8)
        ax.plot([center, center + x], [0.0, y], color=colors.ink, linewidth=2.0)
        ax.plot(center + x, y, "o", color=angles(turn), markeredgecolor=colors.ink, markersize=7)
        drawing.write(center, -1.25 * edge, f"pair {pair}\n{360 * turn:.0f}°", va="top")
    right = 2.6 * edge * (len(xs) - 1) + 1.3 * edge
    ax.set(xlim=(-1.3 * edge, right), ylim=(-2.2 * edge, 1.2 * edge), aspect="equal")
    drawing.without_frame()
    return drawing.finished(f"angle of each pair at position {position:,} (degrees from cos = 1)")


def timestep_fan(
    cos: ArrayLike, sin: ArrayLike, timesteps: Sequence[float] | ArrayLike, **shown: Unpack[Shown]
) -> Axes:
    """Draws each timestep as one blade: pair after pair from the middle out, at its angle t · ω.

    The slowest pairs are at the edge. A blade is followed inward until it has gone round once, or
    turns a quarter and more from one pair to the next: further in, angles no longer tell timesteps.

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
    ax, colors, drawing = opened(6.4, 5.4, **shown)
    radius = np.linspace(HUB, 1.0, across.shape[1])
    ramp = LinearSegmentedColormap.from_list("timesteps", [colors.lines[i] for i in (0, 3, 1)])
    scale = ScalarMappable(Normalize(times.min(), times.max()), ramp)
    for x, y, time in zip(radius * across, radius * up, times, strict=True):
        inner = _followed(x, y)
        style = {"linewidth": 1.1, "markersize": 2, "markevery": [0]}
        ax.plot(x[inner:], y[inner:], "-o", color=scale.to_rgba(time), **style)
    edge = 1.05 * reach(radius * np.hypot(across, up))
    ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", xticks=[], yticks=[])
    drawing.bar(scale, "timestep t")
    return drawing.finished(f"{len(radius)} pairs, the fastest in the middle; angle t · ω")


def _followed(x: np.ndarray, y: np.ndarray) -> int:
    """The innermost pair to which a blade is followed."""
    angles = np.arctan2(y, x)[::-1]
    steps = (np.diff(angles) + np.pi) % (2 * np.pi) - np.pi
    gone = np.abs(angles[0] + np.cumsum(steps)) >= 2 * np.pi
    ends = np.flatnonzero(gone | (np.abs(steps) >= np.pi / 2 - 1e-9))
    return len(x) - 1 - int(ends[0]) if len(ends) else 0


def directions(vectors: Mapping[str, ArrayLike], **shown: Unpack[Shown]) -> Axes:
    """Draws each pair as a point in its direction, the further out the faster it turns.

    Every point has a fainter mirror image: the same turn seen from the other side. Rings are powers
    of ten of the frequency. y grows downward, as rows of an image do.

    Args:
        vectors: ``[*heads, pairs, 2]`` by name, along (y, x) in radians a unit, as of
            ``posenc.inspection.frequencies.frequency_vectors``.

    Example:
        >>> ax = directions({"axial": [[1.0, 0.0], [0.0, 1.0]]})
        >>> ax.get_xlabel()
        'direction along x; rings: radians a unit'
    """
    given = {name: in_float64(values).reshape(-1, 2) for name, values in vectors.items()}
    given = {name: pairs[np.hypot(*pairs.T) > 0] for name, pairs in given.items()}
    ax, colors, drawing = opened(5.6, 5.8, **shown)
    speeds = np.concatenate([np.hypot(*pairs.T) for pairs in given.values()])
    ends = float(speeds.min()), float(speeds.max())
    _draw_rings(drawing, *ends)
    for turn, (name, pairs) in enumerate(given.items()):
        length = np.hypot(*pairs.T)
        y, x = (pairs.T / length) * _radius(length, *ends)
        size = 26 if len(pairs) <= 64 else 9
        color, marker = colors.line(turn), MARKS[turn % 5]
        ax.scatter(x, y, size, color=color, marker=marker, label=name, zorder=3)
        ax.scatter(-x, -y, size, color=color, marker=marker, alpha=0.25, linewidths=0, zorder=2)
    ax.set(xlim=(-1.08, 1.08), ylim=(1.08, -1.08), aspect="equal", xticks=[], yticks=[])
    drawing.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(given))
    xlabel = "direction along x; rings: radians a unit"
    return drawing.finished(xlabel, "direction along y (downward)")


def _radius(speeds: np.ndarray, slowest: float, fastest: float) -> np.ndarray:
    """From the innermost to 1, by the logarithm of the speed."""
    if slowest == fastest:
        return np.ones_like(speeds)
    share = np.log(speeds / slowest) / np.log(fastest / slowest)
    return INNERMOST + (1 - INNERMOST) * share


def _draw_rings(drawing: Drawing, slowest: float, fastest: float) -> None:
    ax, colors = drawing.ax, drawing.colors
    powers = 10.0 ** np.arange(np.ceil(np.log10(slowest)), np.floor(np.log10(fastest)) + 1)
    for power, radius in zip(powers, _radius(powers, slowest, fastest), strict=True):
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor=colors.faint, linewidth=0.8))
        behind = {"facecolor": colors.ground, "edgecolor": "none", "pad": 0.6}
        small = {"fontsize": "x-small", "zorder": 4, "bbox": behind}
        drawing.write(0.26 * radius, -0.966 * radius, f"{power:g}", **small)
    for x, y in ((1.0, 0.0), (0.0, 1.0)):
        ax.plot([-x, x], [-y, y], color=colors.faint, linewidth=0.8, zorder=0)
