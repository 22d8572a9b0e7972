"""In which directions of the plane pairs of channels look, and how fast they turn."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from posenc.plots.style import Look, Theme, dress, in_float64, key, look, new_axes, numbers

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
        vectors: ``[pairs, 2]`` by name, along (y, x) in radians a unit, as of
            ``posenc.inspection.directions.frequency_vectors``; of ``[heads, pairs, 2]`` the pairs
            of all heads.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There are no vectors, they have other axes than two, or none of them turns.

    Example:
        >>> ax = directions({"axial": [[1.0, 0.0], [0.0, 1.0]]})
        >>> ax.get_xlabel()
        'direction along x; rings: radians a unit'
    """
    given = {name: _moving(name, values) for name, values in vectors.items()}
    if not given:
        raise ValueError("vectors is empty; give frequencies [pairs, 2] by name.")
    colors = look(theme)
    ax = new_axes(5.6, 5.8, colors) if ax is None else ax
    speeds = np.concatenate([np.hypot(*pairs.T) for pairs in given.values()])
    slowest, fastest = float(speeds.min()), float(speeds.max())
    _draw_rings(ax, colors, slowest, fastest)
    for turn, (name, pairs) in enumerate(given.items()):
        color, marker = colors.lines[turn % len(colors.lines)], "os^Dv"[turn % 5]
        length = np.hypot(*pairs.T)
        at = (pairs / length[:, None]) * _radius(length, slowest, fastest)[:, None]
        y, x = at.T
        size = 26 if len(pairs) <= 64 else 9
        ax.scatter(x, y, size, color=color, marker=marker, label=name, zorder=3)
        ax.scatter(-x, -y, size, color=color, marker=marker, alpha=0.25, linewidths=0, zorder=2)
    ax.set_xlim(-1.08, 1.08)
    ax.set_ylim(1.08, -1.08)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("direction along x; rings: radians a unit")
    ax.set_ylabel("direction along y (downward)")
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=max(len(given), 1))
    dress(ax, colors)
    return ax


def _moving(name: str, values: ArrayLike) -> np.ndarray:
    if np.ndim(values) == 3:
        values = np.concatenate(in_float64(values), axis=0)
    pairs = numbers(values, name, 2)
    if pairs.shape[1] != 2:
        raise ValueError(f"{name} has {pairs.shape[1]} axes; the plane has two. Pick two of them.")
    pairs = pairs[np.hypot(*pairs.T) > 0]
    if not len(pairs):
        raise ValueError(f"No pair of {name} turns.")
    return pairs


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
    for end in ((1.0, 0.0), (0.0, 1.0)):
        ax.plot([-end[0], end[0]], [-end[1], end[1]], color=colors.faint, linewidth=0.8, zorder=0)
