"""The timesteps of a diffusion run, fanned out by the sines and cosines that tell them apart."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, bar, finished, numbers, opened, reach

HUB = 0.12
"""Radius of the fastest pair, of that of the slowest."""


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
    """The innermost pair of a blade that is less than one turn, and less than a quarter of a turn
    from the next, as are all further out.

    Example:
        >>> _followed(np.array([1.0, -1.0, 0.0, 0.1]), np.array([0.0, 0.0, 1.0, 1.0]))
        2
    """
    angles = np.arctan2(y, x)[::-1]
    steps = (np.diff(angles) + np.pi) % (2 * np.pi) - np.pi
    gone = np.abs(angles[0] + np.cumsum(steps)) >= 2 * np.pi
    ends = np.flatnonzero(gone | (np.abs(steps) >= np.pi / 2 - 1e-9))
    return len(x) - 1 - int(ends[0]) if len(ends) else 0
