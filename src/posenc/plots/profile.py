"""One number for each distance: dot products of an encoding, or scores of rotated vectors."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, check_places, dress, key, look, new_axes, numbers


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
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: ``first`` is no whole number.
        ValueError: There are no numbers, or a distance is beyond 10^14, where axes are no longer
            exact.

    Example:
        >>> ax = distance_profile([2.0, 1.5, 0.6])
        >>> ax.lines[0].get_xdata().tolist(), ax.get_xlabel()
        ([0, 1, 2], 'distance query − key (positions)')
    """
    named = products if isinstance(products, Mapping) else {"": products}
    colors = look(theme)
    ax = new_axes(7.0, 4.0, colors) if ax is None else ax
    for turn, (name, values) in enumerate(named.items()):
        row = numbers(values, name or "products", 1)
        check_places(first, first + len(row) - 1)
        ax.plot(
            range(first, first + len(row)),
            row,
            ("-", "--", "-.", ":")[turn % 4],
            color=colors.lines[turn % len(colors.lines)],
            linewidth=1.3,
            label=name or None,
        )
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    ax.set_xlabel("distance query − key (positions)")
    ax.set_ylabel(quantity)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    if isinstance(products, Mapping):
        key(ax, colors)
    dress(ax, colors)
    return ax


def rotary_score(
    scores: Mapping[str, ArrayLike] | ArrayLike,
    *,
    first: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws R(distance) q · k: what rotary attention sees of two vectors, the query after the key.

    Arguments and errors are those of ``distance_profile``.

    Example:
        >>> rotary_score([1.0, 0.5]).get_ylabel()
        'score R(distance) q · k'
    """
    return distance_profile(
        scores, first=first, quantity="score R(distance) q · k", title=title, ax=ax, theme=theme
    )
