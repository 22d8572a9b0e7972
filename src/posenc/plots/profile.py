"""One number for each distance: dot products of an encoding, or scores of rotated vectors."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.curves import trace
from posenc.plots.style import Theme, dashed, finished, key, numbers, opened


def distance_profile(
    products: Mapping[str, ArrayLike] | ArrayLike,
    *,
    first: int = 0,
    quantity: str = "dot product PE(p) · PE(p + distance)",
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws products over the distance of two positions; it falls, and rises again.

    Args:
        products: One number a distance; several by name.
        first: The distance of the first number, in positions.
        quantity: What is drawn.

    Example:
        >>> ax = distance_profile([2.0, 1.5, 0.6])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('distance query − key (positions)', 'dot product PE(p) · PE(p + distance)')
    """
    named = products if isinstance(products, Mapping) else {"": products}
    ax, colors = opened(ax, theme, 7.0, 4.0)
    for turn, (name, values) in enumerate(named.items()):
        row = numbers(values, name or "products", 1)
        trace(ax, first, row, label=name or None, **dashed(turn, colors))
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    if isinstance(products, Mapping):
        key(ax)
    return finished(ax, colors, title, "distance query − key (positions)", quantity)


def rotary_score(
    scores: Mapping[str, ArrayLike] | ArrayLike,
    *,
    first: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws R(distance) q · k: what rotary attention sees of two vectors, the query after the key.

    Arguments are those of ``distance_profile``.

    Example:
        >>> rotary_score([1.0, 0.5]).get_ylabel()
        'score R(distance) q · k'
    """
    return distance_profile(
        scores, first=first, quantity="score R(distance) q · k", title=title, ax=ax, theme=theme
    )
