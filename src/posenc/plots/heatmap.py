"""The table as a picture: one row a position, one column a dimension."""

from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, bar, finished, in_float64, look, picture

DPI = 100
# Pixels that a figure of its own wants for its cells, and the most that it takes.
WANTED, MOST = 480, 8000
# Pixels of a picture that has more cells than it may take pixels.
MEANS = 1000
# Pixels of a letter at the usual size, and of a mark with its number.
LETTER, MARK = 8, 42


def heatmap(
    table: ArrayLike,
    *,
    start: int = 0,
    first_column: int = 0,
    each: int = 1,
    limit: float | None = 1.0,
    xlabel: str = "dimension (index)",
    ylabel: str = "position (token)",
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
    annotate: bool | None = None,
    dpi: int | None = None,
) -> Axes:
    """Draws ``table`` in colors that are centered at zero and end at −1 and 1.

    A figure of its own gives each cell a whole number of pixels, up to 8,000 in all, so that no
    cell is lost or blended.

    Args:
        table: [positions, dim].
        start: The position of the first row.
        first_column: The number of the first column.
        each: How many positions a row stands for, where the table holds means.
        limit: The end of the colors; the largest size of any number if None.
        xlabel: What the columns are.
        ylabel: What the rows are.
        annotate: Whether each cell holds its number; by default where there are at most 80.
        dpi: Pixels per inch of a figure of its own, for more pixels; 100 by default.

    Example:
        >>> ax = heatmap([[0.0, 1.0], [0.84, 0.54]])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('dimension (index)', 'position (token)')
    """
    values, colors = in_float64(table), look(theme)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    most = limit or largest or 1.0
    annotate = values.size <= 80 and each == 1 if annotate is None else annotate
    bottom, right = start + len(values) * each, first_column + values.shape[1]
    side = None
    if ax is None:
        pixels = cell_pixels((len(values), values.shape[1]), annotate)
        if each > 1:  # of many rows: a cell is no square anyway
            pixels = pixels[0], max(1, round(1.6 * WANTED) // values.shape[1])
        told = len(str(bottom)), title or "", colors.ground, dpi or DPI
        ax, side, title = _page(values.shape, pixels, *told)
    # The bar first: beside axes that came it takes some of their room.
    shades = ScalarMappable(Normalize(-most, most), colors.signed)
    bar(shades, "value", colors, values, ax=ax, cax=side)
    extent = (first_column - 0.5, right - 0.5, bottom - 0.5, start - 0.5)
    picture(ax, values, colors.signed, (-most, most), extent, "auto")
    box, shrunk = ax.get_window_extent(), DPI / ax.figure.dpi
    for axis, room in ((ax.xaxis, box.width * shrunk), (ax.yaxis, box.height * shrunk)):
        count = max(2, min(9, int(room / MARK)))
        axis.set_major_locator(MaxNLocator(nbins=count, integer=True, min_n_ticks=1))
    if annotate:
        for (row, column), value in np.ndenumerate(values):
            red, green, blue, _ = shades.to_rgba(value)
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
            place = first_column + column, start + each * (row + 0.5) - 0.5
            ax.text(*place, _written(float(value), largest), ha="center", va="center", fontsize=8,
                    color="#111111" if bright else "#ffffff")  # fmt: skip
    if each > 1:
        xlabel += f"\neach pixel is the mean of {each:,} rows"
    finished(ax, colors, None, xlabel, ylabel)
    if title:  # a long one begins at the left edge, where it has the whole width
        long = len(title) * LETTER > box.width * shrunk
        ax.set_title(title, fontsize="medium", loc="left" if long else "center", color=colors.ink)
    return ax


def cell_pixels(shape: tuple[int, int], annotate: bool = False) -> tuple[int, int]:
    """Pixels of a cell (height, width) in a figure of its own: whole numbers, at least one."""
    rows, columns = shape
    height, width = max(1, WANTED // rows), max(1, round(1.6 * WANTED) // columns)
    # Cells of a few long rows would become bars; twice as wide as high is still a cell.
    height, width = min(height, 2 * width), min(width, 2 * height)
    return (max(height, 24), max(width, 56)) if annotate else (height, width)


def _page(
    shape: tuple[int, ...], pixels: tuple[int, int], digits: int, title: str, ground: str, dpi: int
) -> tuple[Axes, Axes, str]:
    """Axes of a picture and of its color bar in a figure of their own, and the title in lines.

    Each cell has its whole pixels, or the picture as many as means are worth.
    """
    larger = dpi / DPI
    whole = (max(1, round(each * larger)) * n for each, n in zip(pixels, shape, strict=True))
    high, wide = (each if each <= MOST else round(MEANS * larger) for each in whole)
    left, right, below = larger * (56 + LETTER * digits), larger * 130, larger * 75
    # The picture gets at least the room that its labels need.
    full_wide = max(wide, 200 * larger) + left + right
    lines = wrap(title, int((full_wide - left) / (LETTER * larger))) or [""]
    full_high = max(high, 160 * larger) + below + larger * (32 + 18 * len(lines))
    size = full_wide / dpi, full_high / dpi
    figure = plt.figure(figsize=size, dpi=dpi, facecolor=ground)
    picture, side = (
        figure.add_axes((x / full_wide, below / full_high, width / full_wide, high / full_high))
        for x, width in ((left, wide), (left + wide + 24 * larger, 16 * larger))
    )
    return picture, side, "\n".join(lines)


def _written(value: float, largest: float) -> str:
    """With two decimals, or two digits where decimals would tell nothing; 0 has no sign."""
    plain = largest == 0 or 0.1 <= largest < 1e5
    text = f"{value:.2f}" if plain else f"{value:.1e}" if value else "0"
    return text if float(text) else text.removeprefix("-")
