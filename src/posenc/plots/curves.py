"""Single dimensions as curves over the position."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, check_places, dress, in_float64, look, new_axes, reach

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
        table: [positions, dim], plain numbers.
        dimensions: Which columns; at most six by default, spread over the width.
        labels: A name for each, in the legend.
        start: The position of the first row.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: ``start`` or a dimension is no whole number.
        ValueError: ``table`` is not a matrix, has no such column, ``dimensions`` is empty, the
            labels do not fit, or a row stands beyond 10^14, where axes are no longer exact.

    Example:
        >>> ax = curves([[0.0, 1.0], [0.84, 0.54]], dimensions=[0])
        >>> ax.get_legend_handles_labels()[1]
        ['dimension 0']
    """
    values = in_float64(table)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"table has shape {list(values.shape)}; expected [positions, dim].")
    width = values.shape[1]
    check_places(start, start + len(values) - 1)
    chosen = spread(width) if dimensions is None else list(dimensions)
    if outside := [index for index in chosen if not 0 <= index < width]:
        raise ValueError(f"dimension {outside[0]} is not in the table, which has 0 … {width - 1}.")
    if not chosen:
        raise ValueError(
            "dimensions is empty, and there is nothing to draw. Leave it out for some."
        )
    names = [f"dimension {index}" for index in chosen] if labels is None else list(labels)
    if len(names) != len(chosen):
        raise ValueError(f"{len(names)} labels came for {len(chosen)} dimensions; give one each.")
    ax = _draw(values, chosen, names, int(start), ax, theme)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    dress(ax, look(theme))
    return ax


def spread(width: int, most: int = 6) -> list[int]:
    """At most ``most`` dimensions of ``width``, evenly apart by an even step: all alike.

    Example:
        >>> spread(128), spread(4)
        ([0, 22, 44, 66, 88, 110], [0, 1, 2, 3])
    """
    step = 1 if width <= most else -(-width // (2 * most)) * 2
    return list(range(0, width, step))


def _draw(
    values: np.ndarray,
    chosen: Sequence[int],
    names: Sequence[str],
    start: int,
    ax: Axes | None,
    theme: Theme,
) -> Axes:
    colors = look(theme)
    ax = new_axes(9.0, 4.5, colors) if ax is None else ax
    rows = len(values)
    positions = np.arange(start, start + rows)
    for turn, (index, name) in enumerate(zip(chosen, names, strict=True)):
        # Where colors repeat, the line differs: color never carries the meaning alone.
        style = ("-", "--", ":", "-.")[turn // len(colors.lines) % 4]
        ax.plot(
            positions,
            values[:, index],
            style,
            color=colors.lines[turn % len(colors.lines)],
            marker="o" if rows <= DOTTED else None,
            markersize=3,
            linewidth=1.2,
            label=name,
        )
    edge = 1.08 * reach(values[:, list(chosen)])
    ax.set_ylim(-edge, edge)
    ax.set_xlabel("position (token)")
    ax.set_ylabel("value")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    for text in legend.get_texts():
        text.set_color(colors.ink)
    return ax
