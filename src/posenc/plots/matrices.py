"""Square pictures: dot products of all pairs of positions, and the map of a shift."""

from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.style import Shown, bar, finished, numbers, opened, picture, reach

MOST = 300
"""So many rows of a shift are drawn one by one: there are about as many pixels."""


def similarity_matrix(products: ArrayLike, *, start: int = 0, **shown: Unpack[Shown]) -> Axes:
    """Draws the dot products of all pairs of positions, in colors centered at zero.

    Args:
        products: [positions, positions].
        start: The first position.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> similarity_matrix([[1.0, 0.5], [0.5, 1.0]]).images[0].get_clim()
        (-1.0, 1.0)
    """
    values = numbers(products, "products", 2)
    most = float(np.abs(values).max()) or 1.0
    words = ("position (token)", "position (token)", "dot product")
    return _square(values, most, (start, start + len(values)), words, **shown)


def shift_map(matrix: ArrayLike, *, offset: int, residual: float, **shown: Unpack[Shown]) -> Axes:
    """Draws the linear map that takes every row p of an encoding to row p + offset.

    For a paired convention it rotates each pair of channels: 2 × 2 blocks on the diagonal. Of more
    than 300 channels several are one cell, which shows the weight farthest from zero.

    Args:
        matrix: [dim, dim].
        offset: The offset, in positions.
        residual: The largest error that the map leaves, which is written under it.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = shift_map([[0.5, 0.9], [-0.9, 0.5]], offset=1, residual=1e-16)
        >>> "largest error of the shift: 1.0e-16" in ax.get_xlabel()
        True
    """
    values = numbers(matrix, "matrix", 2)
    dim, each = len(values), -(-len(values) // MOST)
    below = f"dimension before (index)\nlargest error of the shift: {residual:.1e}"
    if each > 1:
        below += f"\neach cell is the largest by size of {each} rows by {each} columns"
    words = (below, f"dimension {offset} positions later (index)", "weight")
    return _square(_largest(values, each), reach(values), (0, dim), words, **shown)


def _largest(values: np.ndarray, each: int) -> np.ndarray:
    """Of every ``each`` rows and columns the number that is farthest from zero, with its sign."""
    for axis in (0, 1):
        starts = np.arange(0, values.shape[axis], each)
        high, low = (f.reduceat(values, starts, axis=axis) for f in (np.maximum, np.minimum))
        values = np.where(high >= -low, high, low)
    return values


def _square(
    values: np.ndarray,
    most: float,
    ends: tuple[int, int],
    words: tuple[str, str, str],
    **shown: Unpack[Shown],
) -> Axes:
    ax, colors, title = opened(5.6, 4.8, **shown)
    low, high = ends[0] - 0.5, ends[1] - 0.5
    image = picture(ax, values, colors.signed, (-most, most), (low, high, high, low))
    xlabel, ylabel, label = words
    bar(image, label, colors, values, ax=ax)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return finished(ax, colors, title, xlabel, ylabel)
