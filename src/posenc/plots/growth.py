"""What something costs as it grows, and how an implementation's error grows with the position."""

from collections.abc import Collection, Mapping
from typing import Unpack

from matplotlib.axes import Axes

from posenc.plots.style import Shown, finished, key, numbers, opened, write

MARKERS = "os^DvpPX"
LEVELS = {"one rounding of float32": 3e-8, "seen in attention scores": 1e-3}


def growth(
    costs: Mapping[str, Mapping[float, float]],
    *,
    against: str | None = None,
    dashed: Collection[str] = (),
    xlabel: str = "rows",
    ylabel: str = "time (ms)",
    **shown: Unpack[Shown],
) -> Axes:
    """Draws what each contender costs over the size, both axes logarithmic.

    On such axes a power of the size is a straight line: its slope is the exponent.

    Args:
        costs: By contender, by size; all above zero.
        against: The contender that the others are compared with: a dotted line.
        dashed: Contenders with dashed lines, such as those of others.
        xlabel: What the size counts.
        ylabel: What is drawn, with its unit.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> times = {"mine": {512: 1.0, 1024: 2.1}, "copy": {512: 0.5, 1024: 1.0}}
        >>> ax = growth(times, against="copy")
        >>> ax.get_legend_handles_labels()[1], ax.get_xscale(), ax.get_yscale()
        (['mine', 'copy'], 'log', 'log')
    """
    ax, colors, title = opened(7.0, 4.2, **shown)
    every, turn = [], 0
    for name, by_size in costs.items():
        sizes = sorted(by_size)
        values = numbers([by_size[size] for size in sizes], f"costs of {name}", 1)
        color, line, marker = colors.ink, ":", "."
        if name != against:
            color, marker = colors.lines[turn % len(colors.lines)], MARKERS[turn % 8]
            line, turn = "--" if name in dashed else "-", turn + 1
        style = {"color": color, "marker": marker, "linewidth": 1.6, "markersize": 4.5}
        ax.plot(sizes, values, line, label=name, **style)
        every += values.tolist()
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    if max(every) < 1e4 * min(every):
        ax.yaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10; powers of ten where there are many
        ax.yaxis.set_minor_formatter("" if max(every) > 10 * min(every) else "{x:g}")
    ax.grid(color=colors.faint, linewidth=0.6)
    key(ax, fontsize="small")
    return finished(ax, colors, title, xlabel, ylabel)


def error_curve(errors: Mapping[str, Mapping[int, float]], **shown: Unpack[Shown]) -> Axes:
    """Draws largest errors over the position, both on logarithmic axes.

    Two lines give the scale: what one rounding of float32 costs, and what attention scores show.
    An error of 0 stands at 1e-17; position 0 has no place, and is left out.

    Args:
        errors: For each implementation the largest absolute error by position.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = error_curve({"mine": {100: 4e-6, 1000: 4e-5}})
        >>> ax.get_xscale(), ax.get_legend_handles_labels()[1]
        ('log', ['mine'])
    """
    ax, colors, title = opened(7.0, 4.0, **shown)
    for turn, (name, by_position) in enumerate(errors.items()):
        places = sorted(set(by_position) - {0})
        values = numbers([by_position[p] for p in places], f"errors of {name}", 1).clip(min=1e-17)
        color = colors.lines[turn % len(colors.lines)]
        ax.plot(places, values, "o-", color=color, label=name, linewidth=1.5, markersize=4)
    ax.set(xscale="log", yscale="log")
    for words, level in LEVELS.items():
        ax.axhline(level, color=colors.faint, linewidth=1.0, zorder=0)
        across = ax.get_yaxis_transform()
        write(ax, 0.99, level, words, colors, ha="right", va="bottom", transform=across)
    key(ax, loc="upper left")
    return finished(ax, colors, title, "position (token)", "largest error")
