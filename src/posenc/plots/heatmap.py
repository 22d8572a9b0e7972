"""The table as a picture: one row a position, one column a dimension."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import Look, Theme, dress, look

DPI = 100
# Pixels that a figure of its own wants for its cells, and the most that it takes.
WANTED, MOST = 480, 8000


def heatmap(
    table: ArrayLike,
    *,
    start: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
    annotate: bool | None = None,
) -> Axes:
    """Draws ``table`` in colors that are fixed to [−1, 1] and centered at zero.

    A figure of its own gives each cell a whole number of pixels, so that no cell is lost or
    blended. On ``ax`` that cannot be promised: cells smaller than a pixel are said so under the
    picture.

    Args:
        table: [positions, dim], values without a unit.
        start: The position of the first row.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.
        annotate: Whether each cell holds its number; by default where there are at most 80.

    Raises:
        ValueError: ``table`` is not a matrix, or the theme is unknown.

    Example:
        >>> ax = heatmap([[0.0, 1.0], [0.84, 0.54]])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('dimension (index)', 'position (token)')
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"table has shape {list(values.shape)}; expected [positions, dim].")
    colors = look(theme)
    if annotate is None:
        annotate = values.size <= 80
    bar = None
    if ax is None:
        ax, bar = _own_figure(values.shape, colors, annotate)
    rows, columns = values.shape
    image = ax.imshow(
        values,
        cmap=colors.signed,
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="none",
        extent=(-0.5, columns - 0.5, start + rows - 0.5, start - 0.5),
    )
    _label(ax, title, colors)
    _say_when_too_small(ax, values.shape)
    scale = ax.figure.colorbar(image, cax=bar, ax=None if bar is not None else ax)
    scale.set_label("value (no unit)", color=colors.ink)
    scale.ax.tick_params(colors=colors.ink)
    scale.outline.set_edgecolor(colors.faint)  # type: ignore[operator]
    if annotate:
        _write_numbers(ax, values, start, colors)
    return ax


def cell_pixels(shape: Sequence[int], annotate: bool = False) -> tuple[int, int]:
    """Pixels of a cell (height, width) in a figure of its own: whole numbers, at least one.

    Example:
        >>> cell_pixels((1000, 512)), cell_pixels((50, 128)), cell_pixels((10, 4))
        ((1, 1), (9, 6), (48, 96))
    """
    rows, columns = shape
    height, width = max(1, WANTED // rows), max(1, round(1.6 * WANTED) // columns)
    # Cells of a few long rows would become bars; twice as wide as high is still a cell.
    height, width = min(height, 2 * width), min(width, 2 * height)
    return (max(height, 24), max(width, 56)) if annotate else (height, width)


def _own_figure(shape: tuple[int, ...], colors: Look, annotate: bool) -> tuple[Axes, Axes]:
    """A figure around whole pixels for each cell: the axes, and those of the color bar."""
    height, width = cell_pixels(shape, annotate)
    high, wide = min(height * shape[0], MOST), min(width * shape[1], MOST)
    left, right, below, above = 80, 130, 75, 50
    # The picture gets at least the room that its labels need.
    full_wide, full_high = max(wide, 200) + left + right, max(high, 160) + below + above
    figure: Figure = plt.figure(
        figsize=(full_wide / DPI, full_high / DPI), dpi=DPI, facecolor=colors.ground
    )
    box = (left / full_wide, below / full_high, wide / full_wide, high / full_high)
    bar = ((left + wide + 24) / full_wide, box[1], 16 / full_wide, box[3])
    return figure.add_axes(box), figure.add_axes(bar)


def _label(ax: Axes, title: str | None, colors: Look) -> None:
    ax.set_xlabel("dimension (index)")
    ax.set_ylabel("position (token)")
    if title:
        ax.set_title(title, fontsize="medium")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    dress(ax, colors)


def _say_when_too_small(ax: Axes, shape: tuple[int, ...]) -> None:
    """A picture with fewer pixels than cells shows only some of them; the reader must know."""
    box = ax.get_window_extent()
    height, width = round(box.height), round(box.width)
    if shape[0] > height or shape[1] > width:
        ax.set_xlabel(
            f"dimension (index)\n{shape[0]} × {shape[1]} cells on "
            f"{height} × {width} pixels: not every cell is seen"
        )


def _write_numbers(ax: Axes, values: np.ndarray, start: int, colors: Look) -> None:
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        red, green, blue, _ = colors.signed((value + 1) / 2)
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        color = "#111111" if bright else "#ffffff"
        ax.text(
            column, start + row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8
        )
