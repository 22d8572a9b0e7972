"""In which directions of the plane pairs of channels look, and how fast they turn."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from posenc.plots.style import Look, Theme, finished, in_float64, key, opened

INNERMOST = 0.25
"""Where the slowest pair stands, of the radius of the fastest: the middle would hide directions."""


def directions(
    vectors: Mapping[str, ArrayLike],
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws each pair as a point in its direction, the further out the faster it turns.

    A pair turns the same way seen from the other side, backward, so every point has a fainter
    mirror image. Rings are powers of ten of the frequency, in radians a unit. y grows downward, as
    rows of an image do. Pairs that do not turn are left out.

    Args:
        vectors: ``[*heads, pairs, 2]`` by name, along (y, x) in radians a unit, as of
            ``posenc.inspection.directions.frequency_vectors``.

    Example:
        >>> ax = directions({"axial": [[1.0, 0.0], [0.0, 1.0]]})
        >>> ax.get_xlabel()
        'direction along x; rings: radians a unit'
    """
    given = {name: _moving(name, values) for name, values in vectors.items()}
    ax, colors = opened(ax, theme, 5.6, 5.8)
    speeds = np.concatenate([np.hypot(*pairs.T) for pairs in given.values()])
    ends = float(speeds.min()), float(speeds.max())
    _draw_rings(ax, colors, *ends)
    for turn, (name, pairs) in enumerate(given.items()):
        length = np.hypot(*pairs.T)
        y, x = (pairs.T / length) * _radius(length, *ends)
        size = 26 if len(pairs) <= 64 else 9
        color, marker = colors.lines[turn % len(colors.lines)], "os^Dv"[turn % 5]
        ax.scatter(x, y, size, color=color, marker=marker, label=name, zorder=3)
        ax.scatter(-x, -y, size, color=color, marker=marker, alpha=0.25, linewidths=0, zorder=2)
    ax.set(xlim=(-1.08, 1.08), ylim=(1.08, -1.08), aspect="equal", xticks=[], yticks=[])
    key(ax, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(given))
    xlabel = "direction along x; rings: radians a unit"
    return finished(ax, colors, title, xlabel, "direction along y (downward)")


def _moving(name: str, values: ArrayLike) -> np.ndarray:
    pairs = in_float64(values)
    if pairs.shape[-1] != 2:
        raise ValueError(f"{name} has {pairs.shape[-1]} axes; expected the two of a plane.")
    pairs = pairs.reshape(-1, 2)
    return pairs[np.hypot(*pairs.T) > 0]


def _radius(speeds: np.ndarray, slowest: float, fastest: float) -> np.ndarray:
    """From the innermost to 1, by the logarithm of the speed."""
    if slowest == fastest:
        return np.ones_like(speeds)
    share = np.log(speeds / slowest) / np.log(fastest / slowest)
    return INNERMOST + (1 - INNERMOST) * share


def _draw_rings(ax: Axes, colors: Look, slowest: float, fastest: float) -> None:
    powers = 10.0 ** np.arange(np.ceil(np.log10(slowest)), np.floor(np.log10(fastest)) + 1)
    for power, radius in zip(powers, _radius(powers, slowest, fastest), strict=True):
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor=colors.faint, linewidth=0.8))
        ax.annotate(
            f"{power:g}", (0.26 * radius, -0.966 * radius), ha="center", va="center", zorder=4,
            fontsize="x-small", color=colors.ink,
            bbox={"facecolor": colors.ground, "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
    for x, y in ((1.0, 0.0), (0.0, 1.0)):
        ax.plot([-x, x], [-y, y], color=colors.faint, linewidth=0.8, zorder=0)
