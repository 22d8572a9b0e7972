"""How alike one patch is to all others of its grid, encoding by encoding."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, bar, finished, numbers, opened
from posenc.plots.tiles import tiled


def patch_similarity(
    similarities: Mapping[str, ArrayLike],
    patch: Sequence[int],
    *,
    columns: int = 4,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the similarity of one patch to every patch of a grid, in colors fixed to [−1, 1].

    Where numbers lie beyond, as products that are no cosines, the color bar is pointed and says how
    far they reach.

    Args:
        similarities: By the name of its encoding, [height, width], as of
            ``posenc.inspection.patches.patch_similarity``; all of one size.
        patch: (row, column) of the patch, which a ring marks.
        columns: Small pictures side by side.

    Example:
        >>> ax = patch_similarity({"MAE": [[1.0, 0.5], [0.5, 0.2]]}, (0, 0))
        >>> ax.images[0].get_clim(), ax.texts[0].get_text()
        ((-1.0, 1.0), 'MAE')
    """
    pictures = np.stack([numbers(values, name, 2) for name, values in similarities.items()])
    count, high, wide = pictures.shape
    rows, across = -(-count // columns), min(columns, count)
    ax, colors = opened(ax, theme, 2.3 * across + 1.2, 2.6 * rows * high / wide + 0.7)
    image, corners = tiled(ax, pictures, list(similarities), columns, 1.0, colors)
    for left, top in corners:
        ax.plot(left + patch[1], top + patch[0], "o", markersize=7, markerfacecolor="none",
                markeredgecolor=colors.ink)  # fmt: skip
    bar(image, "cosine", colors, pictures, ax=ax, pad=0.02)
    label = f"patch at row {patch[0]}, column {patch[1]} of {high} by {wide}"
    return finished(ax, colors, title, label)
