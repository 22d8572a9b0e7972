"""Differences of encodings, seed by seed."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from posenc.plots.style import Theme, finished, numbers, opened


def paired_differences(
    differences: Mapping[str, Sequence[float]],
    intervals: Mapping[str, tuple[float, float, float]],
    *,
    label: str = "difference",
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws a row for each comparison: a dot a seed, the mean with its interval, a line at 0.

    Args:
        differences: By comparison, one number a seed.
        intervals: By comparison: mean, lower and upper end.
        label: What differs, in which direction.

    Example:
        >>> ax = paired_differences({"a − b": [0.1, 0.3]}, {"a − b": (0.2, 0.1, 0.3)})
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['a − b']
    """
    ax, colors = opened(ax, theme, 7.0, 1.0 + 0.32 * len(differences))
    ax.axvline(0, color=colors.ink, linewidth=0.8)
    for row, (name, seeds) in enumerate(differences.items()):
        values = numbers(seeds, f"differences of {name}", 1)
        color = colors.lines[0] if values.mean() >= 0 else colors.lines[1]
        ax.scatter(values, [row] * len(values), s=16, alpha=0.55, color=color, linewidths=0)
        value, low, high = intervals[name]
        ends = [[max(0.0, value - low)], [max(0.0, high - value)]]
        ax.errorbar(
            [value], [row], xerr=ends, fmt="D", markersize=5, capsize=3, linewidth=1.6, color=color
        )
    ax.set_yticks(range(len(differences)), list(differences))
    ax.set_ylim(len(differences) - 0.5, -0.5)
    ax.grid(axis="x", color=colors.faint, linewidth=0.6)
    ax.set_axisbelow(True)
    return finished(ax, colors, title, label)
