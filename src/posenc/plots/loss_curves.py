"""Losses over training steps, a thin line a seed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, dress, in_float64, key, look, new_axes, told_apart


def loss_curves(
    curves: Mapping[str, Sequence[Sequence[Sequence[float]]]],
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws training losses: each seed thin, and the median of seeds with the same steps.

    Args:
        curves: By encoding, for each seed its points [step, loss].
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There is nothing to draw, or nothing of one encoding or seed, or a seed is no
            list of points.

    Example:
        >>> ax = loss_curves({"mine": [[[1, 2.0], [2, 1.0]], [[1, 2.2], [2, 1.4]]]})
        >>> ax.get_ylabel(), [round(float(y), 2) for y in ax.lines[-1].get_ydata()]
        ('training loss (nats)', [2.1, 1.2])
    """
    if not any(len(seeds) for seeds in curves.values()):
        raise ValueError("curves is empty; give at least one encoding with a seed.")
    drawable = {name: _seeds(name, seeds) for name, seeds in curves.items()}
    colors = look(theme)
    ax = new_axes(7.0, 3.6, colors) if ax is None else ax
    for turn, (name, seeds) in enumerate(drawable.items()):
        given = told_apart(turn, colors)
        drawn: dict[str, Any] = {"color": given["color"], "linestyle": given["linestyle"]}
        for points in seeds:
            ax.plot(*points.T, linewidth=0.6, alpha=0.4, **drawn)
        told = [{point[0]: point[1] for point in points} for points in seeds]
        steps = [step for step in told[0] if all(step in each for each in told)]
        middle = [np.median([each[step] for each in told]) for step in steps]
        ax.plot(steps, middle, linewidth=1.7, label=name, **drawn)
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("training loss (nats)")
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    dress(ax, colors)
    return ax


def _seeds(name: str, seeds: Sequence[Sequence[Sequence[float]]]) -> list[np.ndarray]:
    """The points of each seed, ``[points, 2]``."""
    if not len(seeds):
        raise ValueError(f"curves has no seed of {name}; give one, or leave {name} out.")
    made = [in_float64(points) for points in seeds]
    for place, points in enumerate(made):
        if points.ndim != 2 or points.shape[1] != 2 or not len(points):
            raise ValueError(
                f"Seed {place} of {name} has shape {list(points.shape)}; expected points "
                f"[step, loss], one or more."
            )
    return made
