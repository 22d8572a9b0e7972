"""Encodings of a grid as small pictures of the grid: their channels, and how alike patches are."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Drawing, Shown, numbers, opened

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

    Example:
        >>> ax = grid_channels([[0.0, 1.0], [0.8, 0.5]], (1, 2))
        >>> [text.get_text() for text in ax.texts], ax.images[0].get_array().tolist()
        (['channel 0', '1'], [[0.0, 0.8]])
    """
    values = numbers(table, "table", 2)
    dim = values.shape[1]
    chosen = list(range(0, dim, -(-dim // FEW))) if channels is None else list(channels)
    pictures = values[:, chosen].T.reshape(-1, *size)
    most = float(abs(pictures).max()) if limit is None else limit
    names = [f"channel {chosen[0]}", *map(str, chosen[1:])]
    drawing, _ = _tiled(pictures, names, columns, 1.15, "value", most or 1.0, **shown)
    return drawing.finished(f"{size[0]} rows by {size[1]} columns of patches each")


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

    Example:
        >>> ax = patch_similarity({"MAE": [[1.0, 0.5], [0.5, 0.2]]}, (0, 0))
        >>> ax.images[0].get_clim(), ax.texts[0].get_text()
        ((-1.0, 1.0), 'MAE')
    """
    pictures = np.stack([numbers(values, name, 2) for name, values in similarities.items()])
    names = list(similarities)
    drawing, corners = _tiled(pictures, names, columns, 2.3, "cosine", 1.0, **shown)
    ring = {"markersize": 7, "markerfacecolor": "none", "markeredgecolor": drawing.colors.ink}
    for left, top in corners:
        drawing.ax.plot(left + patch[1], top + patch[0], "o", **ring)
    _, high, wide = pictures.shape
    return drawing.finished(f"patch at row {patch[0]}, column {patch[1]} of {high} by {wide}")


def _tiled(
    pictures: np.ndarray,
    names: Sequence[str],
    columns: int,
    inches: float,
    label: str,
    limit: float,
    **shown: Unpack[Shown],
) -> tuple[Drawing, list[tuple[float, float]]]:
    """Draws pictures of one size and so many inches in rows of ``columns``; where each begins."""
    count, high, wide = pictures.shape
    rows, shape = -(-count // columns), high / wide
    size = inches * min(columns, count) + 1.2, 1.17 * inches * rows * shape + 0.65
    ax, _, drawing = opened(*size, **shown)
    across, down = wide * 1.1, high * 1.35  # room for a name
    corners = [(across * (index % columns), down * (index // columns)) for index in range(count)]
    for each, name, (left, top) in zip(pictures, names, corners, strict=True):
        extent = (left - 0.5, left + wide - 0.5, top + high - 0.5, top - 0.5)
        drawing.picture(each, (-limit, limit), extent)
        drawing.write(left + wide / 2 - 0.5, top - 0.5 - 0.03 * high, name, va="bottom")
    ax.set_xlim(-0.5, across * (min(columns, count) - 1) + wide - 0.5)
    ax.set_ylim(down * (rows - 1) + high - 0.5, -0.5 - 0.3 * high)
    drawing.without_frame()
    drawing.bar(ax.images[-1], label, pictures)
    return drawing, corners
