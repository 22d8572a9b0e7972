"""The channels of an encoding of a grid, each a small picture of the grid."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.arguments import check_whole
from posenc.plots.cells import fitted
from posenc.plots.style import Theme, bar, check_limit, dress, look, new_axes, numbers
from posenc.plots.tiles import tiled

FEW = 32


def grid_channels(
    table: ArrayLike,
    size: Sequence[int],
    *,
    channels: Sequence[int] | None = None,
    columns: int = 8,
    limit: float | None = 1.0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws single channels over a grid of rows and columns, in colors centered at zero.

    Args:
        table: [height · width, dim], row after row.
        size: (height, width).
        channels: Which channels; up to 32, evenly spread, by default.
        columns: Small pictures side by side.
        limit: The end of the colors; the largest size of any number drawn if None. Where numbers
            lie beyond it, the color bar is pointed and says how far they reach.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: A size or a channel is no whole number.
        ValueError: The table has other rows than the grid has points, or no such channels, or
            ``columns`` is no whole number from 1 on, or ``limit`` is not positive and finite.

    Example:
        >>> ax = grid_channels([[0.0, 1.0], [0.8, 0.5]], (1, 2))
        >>> [text.get_text() for text in ax.texts], ax.images[0].get_array().tolist()
        (['channel 0', '1'], [[0.0, 0.8]])
    """
    values = numbers(table, "table", 2)
    check_whole(columns=columns)
    check_limit(limit)
    if len(size) != 2 or size[0] * size[1] != len(values):
        raise ValueError(
            f"table has {len(values)} rows and size is {tuple(size)}; give (height, width) of as "
            f"many points."
        )
    dim = values.shape[1]
    chosen = list(range(0, dim, -(-dim // FEW))) if channels is None else list(channels)
    if not chosen or not all(0 <= channel < dim for channel in chosen):
        raise ValueError(f"channels are {chosen}; the table has 0 … {dim - 1}.")
    pictures = [values[:, channel].reshape(tuple(size)) for channel in chosen]
    most = max(abs(picture).max() for picture in pictures) if limit is None else limit
    colors = look(theme)
    if ax is None:
        rows = -(-len(chosen) // columns)
        across = min(columns, len(chosen))
        ax = new_axes(1.15 * across + 1.2, 1.4 * rows * size[0] / size[1] + 0.6, colors)
    names = [f"channel {chosen[0]}", *(str(channel) for channel in chosen[1:])]
    image, _ = tiled(ax, pictures, names, columns, float(most) or 1.0, colors)
    ax.set_xlabel(f"{size[0]} rows by {size[1]} columns of patches each")
    bar(image, ax, "value", colors, pictures)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    dress(ax, colors)
    fitted(ax)
    return ax
