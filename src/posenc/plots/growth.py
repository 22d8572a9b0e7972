"""What something costs as it grows, contender by contender."""

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes

from posenc.plots.style import Theme, dress, key, look, new_axes, numbers

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
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There is nothing to draw, or a size or a cost is not above zero, or no
            contender is called ``against``, or as one in ``dashed``.

    Example:
        >>> times = {"mine": {512: 1.0, 1024: 2.1}, "copy": {512: 0.5, 1024: 1.0}}
        >>> ax = growth(times, against="copy")
        >>> ax.get_legend_handles_labels()[1], ax.get_xscale(), ax.get_yscale()
        (['mine', 'copy'], 'log', 'log')
    """
    if not costs:
        raise ValueError("costs is empty; give at least one contender.")
    if against is not None and against not in costs:
        raise ValueError(f"against is {against!r}; expected one of {', '.join(costs)}.")
    if unknown := [name for name in dashed if name not in costs]:
        raise ValueError(f"dashed has {unknown[0]!r}; expected names of {', '.join(costs)}.")
    colors, every = look(theme), []
    ax = new_axes(7.0, 4.2, colors) if ax is None else ax
    styles = {}
    for turn, name in enumerate(name for name in costs if name != against):
        dashes = {"linestyle": "--" if name in dashed else "-", "marker": MARKERS[turn % 8]}
        styles[name] = {"color": colors.lines[turn % len(colors.lines)], **dashes}
    styles[against] = {"color": colors.ink, "linestyle": ":", "marker": "."}
    for name, by_size in costs.items():
        sizes = numbers(sorted(by_size), f"sizes of {name}", 1)
        values = numbers([by_size[size] for size in sizes], f"costs of {name}", 1)
        if min(sizes.min(), values.min()) <= 0:
            raise ValueError(f"{name} has a size or a cost of 0 or less; a logarithm needs more.")
        ax.plot(sizes, values, linewidth=1.6, markersize=4.5, label=name, **styles[name])
        every += values.tolist()
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    if max(every) < 1e4 * min(every):
        ax.yaxis.set_major_formatter("{x:g}")  # 0.1, 1, 10; powers of ten where there are many
        ax.yaxis.set_minor_formatter("" if max(every) > 10 * min(every) else "{x:g}")
    ax.grid(color=colors.faint, linewidth=0.6)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors, fontsize="small")
    dress(ax, colors)
    return ax
