"""Matrices as pictures: a table of positions, all pairs of positions, and the map of a shift."""

from textwrap import wrap
from typing import Unpack

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import Drawing, Shown, in_float64, look, numbers, opened, reach

DPI = 100
# Pixels that a figure of its own wants for its cells, and the most that it takes.
WANTED, MOST = 480, 8000
# Pixels of a picture that has more cells than it may take pixels.
MEANS = 1000
# Pixels of a letter at the usual size, and of a mark with its number.
LETTER, MARK = 8, 42
# Rows of a shift that are drawn one by one: there are about as many pixels.
WEIGHTS = 300


def heatmap(
    table: ArrayLike,
    *,
    start: int = 0,
    first_column: int = 0,
    each: int = 1,
    limit: float | None = 1.0,
    xlabel: str = "dimension (index)",
    ylabel: str = "position (token)",
    annotate: bool | None = None,
    dpi: int | None = None,
    **shown: Unpack[Shown],
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
    values, colors, side = in_float64(table), look(shown.get("theme", "light")), None
    ax, title = shown.get("ax"), shown.get("title")
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    most = limit or largest or 1.0
    annotate = values.size <= 80 and each == 1 if annotate is None else annotate
    bottom, right = start + len(values) * each, first_column + values.shape[1]
    if ax is None:
        cell = _cell(*values.shape, annotate=annotate, is_square=each == 1)
        told = len(str(bottom)), title or "", colors.ground, dpi or DPI
        ax, side, title = _page(values.shape, cell, *told)
    # The bar first: beside axes that came it takes some of their room.
    shades = ScalarMappable(Normalize(-most, most), colors.signed)
    drawing = Drawing(ax, colors, title)
    drawing.bar(shades, "value", values, cax=side)
    extent = (first_column - 0.5, right - 0.5, bottom - 0.5, start - 0.5)
    drawing.picture(values, (-most, most), extent, aspect="auto")
    box, shrunk = ax.get_window_extent(), DPI / ax.figure.dpi
    for axis, room in ((ax.xaxis, box.width * shrunk), (ax.yaxis, box.height * shrunk)):
        count = max(2, min(9, int(room / MARK)))
        axis.set_major_locator(MaxNLocator(nbins=count, integer=True, min_n_ticks=1))
    if annotate:
        for (row, column), value in np.ndenumerate(values):
            red, green, blue, _ = shades.to_rgba(value)
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
            place = first_column + column, start + each * (row + 0.5) - 0.5
            style = {"fontsize": 8, "color": "#111111" if bright else "#ffffff"}
            drawing.write(*place, _written(float(value), largest), **style)
    if each > 1:
        xlabel += f"\neach pixel is the mean of {each:,} rows"
    # A long title begins at the left edge, where it has the whole width.
    is_long = title is not None and len(title) * LETTER > box.width * shrunk
    return drawing.finished(xlabel, ylabel, loc="left" if is_long else "center", wrap=False)


def _cell(rows: int, columns: int, *, annotate: bool, is_square: bool) -> tuple[int, int]:
    """Pixels of a cell (height, width) in a figure of its own: whole numbers, at least one."""
    height, width = max(1, WANTED // rows), max(1, round(1.6 * WANTED) // columns)
    # Cells of a few long rows would become bars; twice as wide as high is still a cell.
    high, wide = min(height, 2 * width), min(width, 2 * height)
    if annotate:
        high, wide = max(high, 24), max(wide, 56)
    return high, wide if is_square else width


def _page(
    shape: tuple[int, ...], cell: tuple[int, int], digits: int, title: str, ground: str, dpi: int
) -> tuple[Axes, Axes, str]:
    """Axes of a picture and of its color bar in a figure of their own, and the title in lines.

    Each cell has its whole pixels, or the picture as many as means are worth. Lengths here are
    hundredths of an inch.
    """
    pixels = (max(1, round(each * dpi / DPI)) * n for each, n in zip(cell, shape, strict=True))
    high, wide = (each * DPI / dpi if each <= MOST else MEANS for each in pixels)
    left, right, below = 56 + LETTER * digits, 130, 75
    # The picture gets at least the room that its labels need.
    full_wide = left + max(wide, 200) + right
    lines = wrap(title, int((full_wide - left) / LETTER)) or [""]
    full_high = below + max(high, 160) + 32 + 18 * len(lines)
    figure = plt.figure(figsize=(full_wide / DPI, full_high / DPI), dpi=dpi, facecolor=ground)
    picture, side = (
        figure.add_axes((x / full_wide, below / full_high, width / full_wide, high / full_high))
        for x, width in ((left, wide), (left + wide + 24, 16))
    )
    return picture, side, "\n".join(lines)


def _written(value: float, largest: float) -> str:
    """With two decimals, or two digits where decimals would tell nothing; 0 has no sign."""
    plain = largest == 0 or 0.1 <= largest < 1e5
    text = f"{value:.2f}" if plain else f"{value:.1e}" if value else "0"
    return text if float(text) else text.removeprefix("-")


def similarity_matrix(products: ArrayLike, *, start: int = 0, **shown: Unpack[Shown]) -> Axes:
    """Draws the dot products of all pairs of positions, in colors centered at zero.

    Args:
        products: [positions, positions].
        start: The first position.

    Example:
        >>> similarity_matrix([[1.0, 0.5], [0.5, 1.0]]).images[0].get_clim()
        (-1.0, 1.0)
    """
    values = numbers(products, "products", 2)
    most = float(np.abs(values).max()) or 1.0
    drawing = _square(values, most, start, start + len(values), "dot product", **shown)
    return drawing.finished("position (token)", "position (token)")


def shift_map(matrix: ArrayLike, *, offset: int, residual: float, **shown: Unpack[Shown]) -> Axes:
    """Draws the linear map that takes every row p of an encoding to row p + offset.

    For a paired convention it rotates each pair of channels: 2 × 2 blocks on the diagonal. Of more
    than 300 channels several are one cell, which shows the weight farthest from zero.

    Args:
        matrix: [dim, dim].
        offset: The offset, in positions.
        residual: The largest error that the map leaves, which is written under it.

    Example:
        >>> ax = shift_map([[0.5, 0.9], [-0.9, 0.5]], offset=1, residual=1e-16)
        >>> "largest error of the shift: 1.0e-16" in ax.get_xlabel()
        True
    """
    values = numbers(matrix, "matrix", 2)
    dim, each = len(values), -(-len(values) // WEIGHTS)
    below = f"dimension before (index)\nlargest error of the shift: {residual:.1e}"
    if each > 1:
        below += f"\neach cell is the largest by size of {each} rows by {each} columns"
    drawing = _square(_largest(values, each), reach(values), 0, dim, "weight", **shown)
    return drawing.finished(below, f"dimension {offset} positions later (index)")


def _largest(values: np.ndarray, each: int) -> np.ndarray:
    """Of every ``each`` rows and columns the number that is farthest from zero, with its sign."""
    for axis in (0, 1):
        starts = np.arange(0, values.shape[axis], each)
        high, low = (f.reduceat(values, starts, axis=axis) for f in (np.maximum, np.minimum))
        values = np.where(high >= -low, high, low)
    return values


def _square(
    values: np.ndarray, most: float, start: int, end: int, label: str, **shown: Unpack[Shown]
) -> Drawing:
    """The matrix, rows and columns counted from ``start`` to ``end``, and its color bar."""
    ax, _, drawing = opened(5.6, 4.8, **shown)
    low, high = start - 0.5, end - 0.5
    image = drawing.picture(values, (-most, most), (low, high, high, low))
    drawing.bar(image, label, values)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return drawing
