"""What something costs as it grows, contender by contender."""

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes

from posenc.plots.style import Theme, finished, key, numbers, opened

MARKERS = "os^DvpPX"


def growth(
    costs: Mapping[str, Mapping[float, float]],
    *,
    against: str | None = None,
    dashed: Collection[str] = (),
    xlabel: str = "rows",
    ylabel: str = "time (ms)",
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws what each contender costs over the size, both axes logarithmic.

    On such axes a power of the size is a straight line: its slope is the exponent.

    Args:
        costs: By contender, by size; all above zero. Sizes may differ.
        against: The contender that the others are compared with: a dotted line in the color of
            the text.
        dashed: Contenders with dashed lines, such as those of others.
        xlabel: What the size counts.
        ylabel: What is drawn, with its unit.

    Example:
        >>> times = {"mine": {512: 1.0, 1024: 2.1}, "copy": {512: 0.5, 1024: 1.0}}
        >>> ax = growth(times, against="copy")
        >>> ax.get_legend_handles_labels()[1], ax.get_xscale(), ax.get_yscale()
        (['mine', 'copy'], 'log', 'log')
    """
    ax, colors = opened(ax, theme, 7.0, 4.2)
    every, turn = [], 0
    for name, by_size in costs.items():
        sizes = sorted(by_size)
        values = numbers([by_size[size] for size in sizes], f"costs of {name}", 1)
        color, line, marker = colors.ink, ":", "."
        if name != against:
            color, marker = colors.lines[turn % len(colors.lines)], MARKERS[turn % 8]
            line, turn = "--" if name in dashed else "-", turn + 1
        ax.plot(
            sizes, values, line, color=color, marker=marker, linewidth=1.6, markersize=4.5,
            label=name,
        )  # fmt: skip
        every += values.tolist()
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    if max(every) < 1e4 * min(every):
        ax.yaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10; powers of ten where there are many
        ax.yaxis.set_minor_formatter("" if max(every) > 10 * min(every) else "{x:g}")
    ax.grid(color=colors.faint, linewidth=0.6)
    key(ax, fontsize="small")
    return finished(ax, colors, title, xlabel, ylabel)
