"""One number for each offset: dot products of an encoding, or scores of rotated vectors."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, dress, key, look, new_axes, numbers


def distance_profile(
    products: Mapping[str, ArrayLike] | ArrayLike,
    *,
    first: int = 0,
    quantity: str = "dot product PE(p) · PE(p + offset)",
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws products over the offset between two positions; it falls, and rises again.

    Args:
        products: One number an offset, without a unit; several by name.
        first: The offset of the first number, in positions.
        quantity: What is drawn.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There are no numbers.

    Example:
        >>> ax = distance_profile([2.0, 1.5, 0.6])
        >>> ax.lines[0].get_xdata().tolist(), ax.get_xlabel()
        ([0, 1, 2], 'offset (positions)')
    """
    named = products if isinstance(products, Mapping) else {"": products}
    colors = look(theme)
    ax = new_axes(7.0, 4.0, colors) if ax is None else ax
    for turn, (name, values) in enumerate(named.items()):
        row = numbers(values, name or "products", 1)
        ax.plot(
            range(first, first + len(row)),
            row,
            ("-", "--", "-.", ":")[turn % 4],
            color=colors.lines[turn % len(colors.lines)],
            linewidth=1.3,
            label=name or None,
        )
    ax.axhline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    ax.set_xlabel("offset (positions)")
    ax.set_ylabel(f"{quantity} (no unit)")
    if title:
        ax.set_title(title, fontsize="medium")
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
    """Draws q · R(offset) k over the offset: what rotary attention sees of two fixed vectors.

    Arguments and errors are those of ``distance_profile``.

    Example:
        >>> rotary_score([1.0, 0.5]).get_ylabel()
        'score q · R(offset) k (no unit)'
    """
    return distance_profile(
        scores, first=first, quantity="score q · R(offset) k", title=title, ax=ax, theme=theme
    )
