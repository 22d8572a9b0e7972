"""Small pictures side by side in one, each with its name above.

Where there are fewer pixels than cells, each shows the mean of several, and the picture says so.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from posenc.plots.cells import cells
from posenc.plots.style import Look


def tiled(
    ax: Axes,
    pictures: Sequence[np.ndarray],
    names: Sequence[str],
    columns: int,
    limit: float,
    colors: Look,
) -> tuple[AxesImage, list[tuple[float, float]]]:
    """Draws pictures of one size in rows of ``columns``, and tells where each begins.

    Example:
        >>> from posenc.plots.style import look, new_axes
        >>> colors = look("light")
        >>> ax = new_axes(4, 3, colors)
        >>> tiled(ax, [np.eye(2)] * 3, ["a", "b", "c"], 2, 1.0, colors)[1]
        [(0.0, 0.0), (2.2, 0.0), (0.0, 2.7)]
    """
    high, wide = pictures[0].shape
    across, down = wide * 1.1, high * 1.35  # room for a name
    corners, image = [], None
    for index, (picture, name) in enumerate(zip(pictures, names, strict=True)):
        left, top = across * (index % columns), down * (index // columns)
        corners.append((left, top))
        extent = (left - 0.5, left + wide - 0.5, top + high - 0.5, top - 0.5)
        image = cells(ax, picture, colors.signed, (-limit, limit), extent)
        ax.text(left + wide / 2 - 0.5, top - 0.5 - 0.03 * high, name, ha="center", va="bottom",
                color=colors.ink, fontsize="small")  # fmt: skip
    rows = ceil(len(pictures) / columns)
    ax.set_xlim(-0.5, across * (min(columns, len(pictures)) - 1) + wide - 0.5)
    ax.set_ylim(down * (rows - 1) + high - 0.5, -0.5 - 0.3 * high)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    assert image is not None
    return image, corners
