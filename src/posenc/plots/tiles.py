"""Small pictures side by side in one, each with its name above."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from posenc.plots.style import Look, picture, without_frame


def tiled(
    ax: Axes,
    pictures: np.ndarray,
    names: Sequence[str],
    columns: int,
    limit: float,
    colors: Look,
) -> tuple[AxesImage, list[tuple[float, float]]]:
    """Draws pictures of one size in rows of ``columns``, and tells where each begins.

    Example:
        >>> from posenc.plots.style import opened
        >>> ax, colors = opened(None, "light", 4, 3)
        >>> tiled(ax, np.stack([np.eye(2)] * 3), ["a", "b", "c"], 2, 1.0, colors)[1]
        [(0.0, 0.0), (2.2, 0.0), (0.0, 2.7)]
    """
    count, high, wide = pictures.shape
    across, down = wide * 1.1, high * 1.35  # room for a name
    corners = [(across * (index % columns), down * (index // columns)) for index in range(count)]
    images = []
    for each, name, (left, top) in zip(pictures, names, corners, strict=True):
        extent = (left - 0.5, left + wide - 0.5, top + high - 0.5, top - 0.5)
        images.append(picture(ax, each, colors.signed, (-limit, limit), extent))
        ax.text(left + wide / 2 - 0.5, top - 0.5 - 0.03 * high, name, ha="center", va="bottom",
                color=colors.ink, fontsize="small")  # fmt: skip
    ax.set_xlim(-0.5, across * (min(columns, count) - 1) + wide - 0.5)
    ax.set_ylim(down * (ceil(count / columns) - 1) + high - 0.5, -0.5 - 0.3 * high)
    without_frame(ax)
    return images[0], corners
