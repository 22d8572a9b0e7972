"""How alike one patch is to all others of its grid, encoding by encoding."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.arguments import check_whole
from posenc.plots.cells import fitted
from posenc.plots.style import Theme, bar, dress, look, new_axes, numbers
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
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: A coordinate of the patch, or ``columns``, is no whole number.
        ValueError: There are none, their sizes differ, or there is no such patch.

    Example:
        >>> ax = patch_similarity({"MAE": [[1.0, 0.5], [0.5, 0.2]]}, (0, 0))
        >>> ax.images[0].get_clim(), ax.texts[0].get_text()
        ((-1.0, 1.0), 'MAE')
    """
    pictures = [numbers(values, name, 2) for name, values in similarities.items()]
    sizes = {picture.shape for picture in pictures}
    check_whole(columns=columns)
    if len(sizes) != 1 or columns < 1:
        raise ValueError(
            f"similarities have sizes {sorted(sizes)}; give one or more, all of one, and columns "
            f"from 1 on."
        )
    (size,) = sizes
    if len(patch) != 2 or not all(0 <= p < n for p, n in zip(patch, size, strict=True)):
        raise ValueError(f"patch is {tuple(patch)}; it must be (row, column) in {size}.")
    colors = look(theme)
    if ax is None:
        rows, across = -(-len(pictures) // columns), min(columns, len(pictures))
        ax = new_axes(2.3 * across + 1.2, 2.6 * rows * size[0] / size[1] + 0.7, colors)
    image, corners = tiled(ax, pictures, list(similarities), columns, 1.0, colors)
    for left, top in corners:
        ax.plot(left + patch[1], top + patch[0], "o", markersize=7, markerfacecolor="none",
                markeredgecolor=colors.ink)  # fmt: skip
    ax.set_xlabel(f"patch at row {patch[0]}, column {patch[1]} of {size[0]} by {size[1]}")
    bar(image, ax, "cosine", colors, pictures)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    dress(ax, colors)
    fitted(ax)
    return ax
