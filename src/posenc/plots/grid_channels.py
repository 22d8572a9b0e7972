"""The channels of an encoding of a grid, each a small picture of the grid."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, bar, finished, numbers, opened
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

    Example:
        >>> ax = grid_channels([[0.0, 1.0], [0.8, 0.5]], (1, 2))
        >>> [text.get_text() for text in ax.texts], ax.images[0].get_array().tolist()
        (['channel 0', '1'], [[0.0, 0.8]])
    """
    values = numbers(table, "table", 2)
    dim = values.shape[1]
    chosen = list(range(0, dim, -(-dim // FEW))) if channels is None else list(channels)
    pictures = values[:, chosen].T.reshape(-1, *size)
    most = abs(pictures).max() if limit is None else limit
    rows, across = -(-len(chosen) // columns), min(columns, len(chosen))
    ax, colors = opened(ax, theme, 1.15 * across + 1.2, 1.4 * rows * size[0] / size[1] + 0.6)
    names = [f"channel {chosen[0]}", *(str(channel) for channel in chosen[1:])]
    image, _ = tiled(ax, pictures, names, columns, float(most) or 1.0, colors)
    bar(image, "value", colors, pictures, ax=ax, pad=0.02)
    return finished(ax, colors, title, f"{size[0]} rows by {size[1]} columns of patches each")
