"""How an implementation's error grows with the position."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from posenc.plots.style import Theme, finished, key, numbers, opened

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

    Example:
        >>> ax = error_curve({"mine": {100: 4e-6, 1000: 4e-5}})
        >>> ax.get_xscale(), ax.get_legend_handles_labels()[1]
        ('log', ['mine'])
    """
    ax, colors = opened(ax, theme, 7.0, 4.0)
    for turn, (name, by_position) in enumerate(errors.items()):
        positions = sorted(by_position)
        values = numbers([by_position[p] for p in positions], f"errors of {name}", 1)
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
    ax.set(xscale="log", yscale="log")
    for level, words in ((ROUNDING, "one rounding of float32"), (SEEN, "seen in attention scores")):
        ax.axhline(level, color=colors.faint, linewidth=1.0, zorder=0)
        ax.annotate(
            words, (0.99, level), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize="small", color=colors.ink,
        )  # fmt: skip
    key(ax, loc="upper left")
    return finished(ax, colors, title, "position (token)", "largest error")
