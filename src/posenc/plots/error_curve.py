"""How an implementation's error grows with the position."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from posenc.arguments import check_whole
from posenc.plots.style import Theme, dress, look, new_axes, numbers

SEEN = 1e-3  # an error that attention scores begin to show
ROUNDING = 3e-8  # half a unit in the last place of float32, beside one


def error_curve(
    errors: Mapping[str, Mapping[int, float]],
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws largest errors over the position, both on logarithmic axes.

    Two lines give the scale: what one rounding of float32 costs, and what attention scores show.
    An error of 0 stands at 1e-17; position 0 has no place, and is left out.

    Args:
        errors: For each implementation the largest absolute error by position.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There is nothing to draw, a position is no whole number from 0 on, or an error
            is below 0 or not finite.

    Example:
        >>> ax = error_curve({"mine": {100: 4e-6, 1000: 4e-5}})
        >>> ax.get_xscale(), ax.get_legend_handles_labels()[1]
        ('log', ['mine'])
    """
    if not any(errors.values()):
        raise ValueError("errors is empty; give at least one position and its error.")
    for position in (each for by_position in errors.values() for each in by_position):
        check_whole(0, position=position)
    colors = look(theme)
    ax = new_axes(7.0, 4.0, colors) if ax is None else ax
    for turn, (name, by_position) in enumerate(errors.items()):
        positions = sorted(by_position)
        values = numbers([by_position[p] for p in positions], f"errors of {name}", 1)
        if values.min() < 0:
            raise ValueError(f"{name} has an error of {values.min()}; sizes are 0 or more.")
        first = int(positions[0] == 0)
        ax.plot(
            positions[first:],
            values[first:].clip(min=1e-17),
            "o-",
            color=colors.lines[turn % len(colors.lines)],
            label=name,
            linewidth=1.5,
            markersize=4,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    for level, words in ((ROUNDING, "one rounding of float32"), (SEEN, "seen in attention scores")):
        ax.axhline(level, color=colors.faint, linewidth=1.0, zorder=0)
        ax.annotate(
            words, (0.99, level), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize="small", color=colors.ink,
        )  # fmt: skip
    ax.set_xlabel("position (token)")
    ax.set_ylabel("largest error")
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    legend = ax.legend(frameon=False, loc="upper left")
    for text in legend.get_texts():
        text.set_color(colors.ink)
    dress(ax, colors)
    return ax
