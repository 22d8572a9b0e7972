"""Encodings of a grid as small pictures of the grid: their channels, and how alike patches are."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from posenc.plots.style import (
    Look,
    Shown,
    bar,
    finished,
    numbers,
    opened,
    picture,
    without_frame,
    write,
)

FEW = 32


def grid_channels(
    table: ArrayLike,
    size: Sequence[int],
    *,
    channels: Sequence[int] | None = None,
    columns: int = 8,
    limit: float | None = 1.0,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws single channels over a grid of rows and columns, in colors centered at zero.

    Args:
        table: [height · width, dim], row after row.
        size: (height, width).
        channels: Which channels; up to 32, evenly spread, by default.
        columns: Small pictures side by side.
        limit: The end of the colors; the largest size of any number drawn if None.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

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
    ax, colors, title = opened(1.15 * across + 1.2, 1.4 * rows * size[0] / size[1] + 0.6, **shown)
    names = [f"channel {chosen[0]}", *(str(channel) for channel in chosen[1:])]
    image, _ = _tiled(ax, pictures, names, columns, float(most) or 1.0, colors)
    bar(image, "value", colors, pictures, ax=ax)
    return finished(ax, colors, title, f"{size[0]} rows by {size[1]} columns of patches each")


def patch_similarity(
    similarities: Mapping[str, ArrayLike],
    patch: Sequence[int],
    *,
    columns: int = 4,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws the similarity of one patch to every patch of a grid, in colors fixed to [−1, 1].

    Args:
        similarities: By the name of its encoding, [height, width], as of
            ``posenc.inspection.similarity.patch_similarity``; all of one size.
        patch: (row, column) of the patch, which a ring marks.
        columns: Small pictures side by side.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = patch_similarity({"MAE": [[1.0, 0.5], [0.5, 0.2]]}, (0, 0))
        >>> ax.images[0].get_clim(), ax.texts[0].get_text()
        ((-1.0, 1.0), 'MAE')
    """
    pictures = np.stack([numbers(values, name, 2) for name, values in similarities.items()])
    count, high, wide = pictures.shape
    rows, across = -(-count // columns), min(columns, count)
    ax, colors, title = opened(2.3 * across + 1.2, 2.6 * rows * high / wide + 0.7, **shown)
    image, corners = _tiled(ax, pictures, list(similarities), columns, 1.0, colors)
    ring = {"markersize": 7, "markerfacecolor": "none", "markeredgecolor": colors.ink}
    for left, top in corners:
        ax.plot(left + patch[1], top + patch[0], "o", **ring)
    bar(image, "cosine", colors, pictures, ax=ax)
    label = f"patch at row {patch[0]}, column {patch[1]} of {high} by {wide}"
    return finished(ax, colors, title, label)


def _tiled(
    ax: Axes, pictures: np.ndarray, names: Sequence[str], columns: int, limit: float, colors: Look
) -> tuple[AxesImage, list[tuple[float, float]]]:
    """Draws pictures of one size in rows of ``columns``, and tells where each begins."""
    count, high, wide = pictures.shape
    across, down = wide * 1.1, high * 1.35  # room for a name
    corners = [(across * (index % columns), down * (index // columns)) for index in range(count)]
    images = []
    for each, name, (left, top) in zip(pictures, names, corners, strict=True):
        extent = (left - 0.5, left + wide - 0.5, top + high - 0.5, top - 0.5)
        images.append(picture(ax, each, colors.signed, (-limit, limit), extent))
        write(ax, left + wide / 2 - 0.5, top - 0.5 - 0.03 * high, name, colors, va="bottom")
    ax.set_xlim(-0.5, across * (min(columns, count) - 1) + wide - 0.5)
    ax.set_ylim(down * (ceil(count / columns) - 1) + high - 0.5, -0.5 - 0.3 * high)
    without_frame(ax)
    return images[0], corners
