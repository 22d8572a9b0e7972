"""Losses over training steps, a thin line a seed."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, beside, finished, numbers, opened, told_apart


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

    Example:
        >>> ax = loss_curves({"mine": [[[1, 2.0], [2, 1.0]], [[1, 2.2], [2, 1.4]]]})
        >>> ax.get_ylabel(), [round(float(y), 2) for y in ax.lines[-1].get_ydata()]
        ('training loss (nats)', [2.1, 1.2])
    """
    ax, colors = opened(ax, theme, 7.0, 3.6)
    for turn, (name, seeds) in enumerate(curves.items()):
        style = told_apart(turn, colors)
        style.pop("marker")
        drawn = [numbers(points, f"a seed of {name}", 2) for points in seeds]
        for points in drawn:
            ax.plot(*points.T, linewidth=0.6, alpha=0.4, **style)
        told = [dict(points) for points in drawn]
        steps = [step for step in told[0] if all(step in each for each in told)]
        middle = [np.median([each[step] for each in told]) for step in steps]
        ax.plot(steps, middle, linewidth=1.7, label=name, **style)
    ax.set_yscale("log")
    beside(ax)
    return finished(ax, colors, title, "step", "training loss (nats)")
