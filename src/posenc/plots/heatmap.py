"""The table as a picture: one row a position, one column a dimension."""

from collections.abc import Sequence
from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.arguments import check_whole
from posenc.plots.cells import cells, fitted
from posenc.plots.style import (
    Look,
    Theme,
    bar,
    check_limit,
    check_places,
    dress,
    in_float64,
    look,
)

DPI = 100
# Pixels that a figure of its own wants for its cells, and the most that it takes.
WANTED, MOST = 480, 8000
# Pixels for means of several cells: a picture of these need not be that long.
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

    A figure of its own gives each cell a whole number of pixels, so that no cell is lost or
    blended. Where there are fewer pixels than cells, each shows the mean of several, and the
    picture says so: every n-th cell alone would show a pattern that the table does not have.

    Args:
        table: [positions, dim], plain numbers.
        start: The position of the first row.
        first_column: The number of the first column.
        each: How many positions a row stands for, where the table holds means already.
        limit: The end of the colors; the largest size of any number if None. Where numbers lie
            beyond it, the color bar is pointed and says how far they reach.
        xlabel: What the columns are.
        ylabel: What the rows are.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.
        annotate: Whether each cell holds its number; by default where there are at most 80.
        dpi: Pixels per inch of a figure of its own, for more pixels; 100 by default.

    Raises:
        TypeError: ``start`` or ``first_column`` is no whole number.
        ValueError: ``table`` is not a matrix, the theme is unknown, or ``each`` or ``dpi`` is no
            whole number from 1 on, ``limit`` is not positive and finite, or a row stands beyond
            10^14, where axes are no longer exact.

    Example:
        >>> ax = heatmap([[0.0, 1.0], [0.84, 0.54]])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('dimension (index)', 'position (token)')
    """
    values = in_float64(table)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"table has shape {list(values.shape)}; expected [positions, dim].")
    check_whole(each=each, dpi=DPI if dpi is None else dpi)
    check_limit(limit)
    colors = look(theme)
    most = np.abs(values[np.isfinite(values)]).max(initial=0.0) if limit is None else limit
    most = float(most) or 1.0
    if annotate is None:
        annotate = values.size <= 80 and each == 1
    bottom, right = start + values.shape[0] * each, first_column + values.shape[1]
    check_places(start, bottom - 1)
    place = None
    if ax is None:
        page = _Page(values.shape, len(f"{bottom:.0f}"), title, annotate, each > 1, dpi or DPI)
        ax, place = page.axes(colors)
        title = page.title
    shades = ScalarMappable(Normalize(-most, most), colors.signed)
    # The bar first: beside axes that came it takes some of their room.
    bar(shades, ax, "value", colors, values, place)
    extent = (first_column - 0.5, right - 0.5, bottom - 0.5, start - 0.5)
    image = cells(ax, values, colors.signed, (-most, most), extent, aspect="auto", each=each)
    _label(ax, title, colors, xlabel, ylabel)
    fitted(ax)
    if annotate:
        _write_numbers(image, image.shown, most, colors)
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


class _Page:
    """A figure around whole pixels for each cell, with room for its labels."""

    def __init__(
        self,
        shape: tuple[int, ...],
        digits: int,
        title: str | None,
        annotate: bool,
        means: bool,
        dpi: int,
    ):
        larger = dpi / DPI
        pixels = cell_pixels(shape, annotate)
        if means:  # of many rows: a cell is no square anyway
            pixels = pixels[0], max(1, round(1.6 * WANTED) // shape[1])
        self.dpi = dpi
        # Each cell its pixels, or as many pixels as means are worth.
        self.high, self.wide = (
            each * count if each * count <= MOST else round(MEANS * larger)
            for each, count in zip((max(1, round(p * larger)) for p in pixels), shape, strict=True)
        )
        self.left, self.right = larger * (56 + LETTER * digits), larger * 130
        self.below, self.gap = larger * 75, larger
        # The picture gets at least the room that its labels need.
        self.full_wide = max(self.wide, 200 * larger) + self.left + self.right
        room = int((self.full_wide - self.left) / (LETTER * larger))
        lines = wrap(title or "", room, break_long_words=True) or [""]
        self.title = "\n".join(lines) or None
        self.above = larger * (32 + 18 * len(lines))
        self.full_high = max(self.high, 160 * larger) + self.below + self.above

    def axes(self, colors: Look) -> tuple[Axes, Axes]:
        """The axes of the picture, and those of its color bar."""
        size = self.full_wide, self.full_high
        figure: Figure = plt.figure(
            figsize=(size[0] / self.dpi, size[1] / self.dpi),
            dpi=self.dpi,
            facecolor=colors.ground,
        )
        picture = (self.left, self.below, self.wide, self.high)
        bar = (self.left + self.wide + 24 * self.gap, self.below, 16 * self.gap, self.high)
        return tuple(
            figure.add_axes((x / size[0], y / size[1], wide / size[0], high / size[1]))
            for x, y, wide, high in (picture, bar)
        )  # type: ignore[return-value]


def _label(ax: Axes, title: str | None, colors: Look, xlabel: str, ylabel: str) -> None:
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    box = ax.get_window_extent()
    if title:
        # A long title begins at the left edge, where it has the whole width.
        long = len(title) * LETTER > box.width * DPI / ax.figure.dpi  # type: ignore[union-attr]
        place = "left" if long else "center"
        ax.set_title(title, fontsize="medium", loc=place, color=colors.ink)
    for axis, pixels in ((ax.xaxis, box.width), (ax.yaxis, box.height)):
        count = max(2, min(9, int(pixels * DPI / ax.figure.dpi / MARK)))  # type: ignore[union-attr]
        axis.set_major_locator(MaxNLocator(nbins=count, integer=True, min_n_ticks=1))
    dress(ax, colors)


def _write_numbers(image: AxesImage, values: np.ndarray, most: float, colors: Look) -> None:
    """Writes each number into the middle of its cell, however many positions that stands for."""
    left, right, bottom, top = image.get_extent()
    high, wide = (bottom - top) / values.shape[0], (right - left) / values.shape[1]
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        red, green, blue, _ = colors.signed((value / most + 1) / 2)
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        color = "#111111" if bright else "#ffffff"
        image.axes.text(  # type: ignore[union-attr]
            left + (column + 0.5) * wide,
            top + (row + 0.5) * high,
            _written(value, largest),
            ha="center",
            va="center",
            color=color,
            fontsize=8,
        )


def _written(value: float, largest: float) -> str:
    """With two decimals, or two digits where these would tell nothing of the largest; 0 unsigned.

    Example:
        >>> _written(-0.001, 0.5), _written(2e-5, 2e-5), _written(3e6, 3e6)
        ('0.00', '2.0e-05', '3.0e+06')
    """
    plain = largest == 0 or 0.1 <= largest < 1e5
    text = f"{value:.2f}" if plain else f"{value:.1e}" if value else "0"
    return text if float(text) else text.removeprefix("-")
