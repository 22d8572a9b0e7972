"""Single dimensions as curves over the position."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import DASHES, Theme, finished, in_float64, key, opened, reach

# Up to this many positions each one has a dot: the encoding lives at whole numbers only.
DOTTED = 120


def curves(
    table: ArrayLike,
    *,
    dimensions: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    start: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws columns of ``table`` over the position; the dots are the values, lines guide the eye.

    The frame goes from −1 to 1, or further where a curve does.

    Args:
        table: [positions, dim].
        dimensions: Which columns; at most six by default, spread over the width.
        labels: A name for each, in the legend.
        start: The position of the first row.

    Example:
        >>> ax = curves([[0.0, 1.0], [0.84, 0.54]], dimensions=[0])
        >>> ax.get_legend_handles_labels()[1]
        ['dimension 0']
    """
    values = in_float64(table)
    chosen = list(spread(values.shape[1]) if dimensions is None else dimensions)
    names = [f"dimension {index}" for index in chosen] if labels is None else labels
    ax, colors = opened(ax, theme, 9.0, 4.5)
    positions = np.arange(start, start + len(values))
    for turn, (index, name) in enumerate(zip(chosen, names, strict=True)):
        ax.plot(
            positions,
            values[:, index],
            # Where colors repeat, the line differs: color never carries the meaning alone.
            DASHES[turn // len(colors.lines) % 4],
            color=colors.lines[turn % len(colors.lines)],
            marker="o" if len(values) <= DOTTED else None,
            markersize=3,
            linewidth=1.2,
            label=name,
        )
    edge = 1.08 * reach(values[:, chosen])
    ax.set_ylim(-edge, edge)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    key(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return finished(ax, colors, title, "position (token)", "value")


def spread(width: int, most: int = 6) -> list[int]:
    """At most ``most`` dimensions of ``width``, evenly apart by an even step: all alike.

    Example:
        >>> spread(128), spread(4)
        ([0, 22, 44, 66, 88, 110], [0, 1, 2, 3])
    """
    step = 1 if width <= most else -(-width // (2 * most)) * 2
    return list(range(0, width, step))
