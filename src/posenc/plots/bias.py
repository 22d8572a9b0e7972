"""What a relative bias adds to scores at each distance, head by head."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, dress, key, look, new_axes, numbers


def bias(
    profile: ArrayLike,
    distances: ArrayLike,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the profile of a bias: one line a head over the distance query − key.

    Args:
        profile: [heads, distances], in units of scores (natural logarithms of weights).
        distances: [distances], in positions; negative ones are keys after their query.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: The shapes do not fit each other.

    Example:
        >>> import torch
        >>> from posenc import ALiBi
        >>> distance = torch.arange(-5, 6)
        >>> ax = bias(ALiBi(4).profile(distance), distance)
        >>> len(ax.lines) - 1, ax.get_xlabel()
        (4, 'distance query − key (positions)')
    """
    values, places = numbers(profile, "profile", 2), numbers(distances, "distances", 1)
    if values.shape[1] != len(places):
        raise ValueError(
            f"profile has {values.shape[1]} columns and there are {len(places)} distances; give "
            f"one each."
        )
    colors = look(theme)
    ax = new_axes(7.0, 4.2, colors) if ax is None else ax
    ax.axvline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    shades = np.linspace(0.15, 0.85, len(values))
    for head, (row, shade) in enumerate(zip(values, shades, strict=True)):
        many = len(values) > len(colors.lines)
        color = look_between(colors.lines[0], colors.lines[1], shade) if many else (
            colors.lines[head]
        )  # fmt: skip
        ax.plot(
            places,
            row,
            ("-", "--", "-.", ":")[head % 4],
            color=color,
            linewidth=1.4,
            label=f"head {head}",
        )
    ax.set_xlabel("distance query − key (positions)")
    ax.set_ylabel("added to the score (no unit)")
    if title:
        ax.set_title(title, fontsize="medium")
    key(ax, colors, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    dress(ax, colors)
    return ax


def look_between(one: str, other: str, share: float) -> tuple[float, float, float]:
    """A color between two.

    Example:
        >>> look_between("#000000", "#ffffff", 0.5)
        (0.5, 0.5, 0.5)
    """
    first, second = (
        np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for color in (one, other)
    )
    red, green, blue = first + share * (second - first)
    return float(red), float(green), float(blue)
