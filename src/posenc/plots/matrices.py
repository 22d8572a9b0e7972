"""Square pictures: dot products of all pairs of positions, and the map of a shift."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from posenc.plots.cells import LARGEST, cells, fitted
from posenc.plots.style import Theme, bar, check_places, dress, look, new_axes, numbers, reach


def similarity_matrix(
    products: ArrayLike,
    *,
    start: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the dot products of all pairs of positions, in colors centered at zero.

    Where pixels are fewer than cells, each shows the mean of several, and the picture says so.

    Args:
        products: [positions, positions].
        start: The first position.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: ``start`` is no whole number.
        ValueError: It is no square of finite numbers, or a position is beyond 10^14, where axes are
            no longer exact.

    Example:
        >>> similarity_matrix([[1.0, 0.5], [0.5, 1.0]]).images[0].get_clim()
        (-1.0, 1.0)
    """
    values = _square(products, "products")
    check_places(start, start + len(values) - 1)
    colors = look(theme)
    ax = new_axes(5.6, 4.8, colors) if ax is None else ax
    most, size = np.abs(values).max() or 1.0, len(values)
    edges = (start - 0.5, start + size - 0.5, start + size - 0.5, start - 0.5)
    image = cells(ax, values, colors.signed, (-most, most), edges)
    ax.set_xlabel("position (token)")
    ax.set_ylabel("position (token)")
    bar(image, ax, "dot product", colors)
    return _finished(ax, title, theme)


def shift_map(
    matrix: ArrayLike,
    *,
    offset: int,
    residual: float,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the linear map that takes every row p of an encoding to row p + offset.

    For a paired convention it is a rotation in each pair of channels: 2 × 2 blocks on the diagonal.
    Where there are fewer pixels than weights, each shows the one of several that is farthest from
    zero, and the picture says so.

    Args:
        matrix: [dim, dim].
        offset: The offset, in positions.
        residual: The largest error that the map leaves, which is written under it.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: ``offset`` is no whole number.
        ValueError: It is no square of finite numbers.

    Example:
        >>> ax = shift_map([[0.5, 0.9], [-0.9, 0.5]], offset=1, residual=1e-16)
        >>> "largest error of the shift: 1.0e-16" in ax.get_xlabel()
        True
    """
    values = _square(matrix, "matrix")
    colors = look(theme)
    ax = new_axes(5.6, 4.8, colors) if ax is None else ax
    most = reach(values)
    edges = (-0.5, len(values) - 0.5, len(values) - 0.5, -0.5)
    # A mean would dim weights that stand alone.
    image = cells(ax, values, colors.signed, (-most, most), edges, summary=LARGEST)
    ax.set_xlabel(f"dimension before (index)\nlargest error of the shift: {residual:.1e}")
    ax.set_ylabel(f"dimension {offset} positions later (index)")
    bar(image, ax, "weight", colors)
    return _finished(ax, title, theme)


def _square(values: ArrayLike, name: str) -> np.ndarray:
    made = numbers(values, name, 2)
    if made.shape[0] != made.shape[1]:
        raise ValueError(f"{name} has shape {list(made.shape)}; expected a square.")
    return made


def _finished(ax: Axes, title: str | None, theme: Theme) -> Axes:
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    dress(ax, look(theme))
    fitted(ax)
    return ax
