"""What a training step costs, encoding by encoding."""

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes

from posenc.arguments import check_whole
from posenc.plots.style import Theme, dress, in_float64, look, new_axes, numbers


def costs(
    milliseconds: Mapping[str, Sequence[float]],
    parameters: Mapping[str, int],
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws milliseconds a step: the median as a bar, a dot a run, and what is learned in words.

    Args:
        milliseconds: By encoding, one number a run.
        parameters: By encoding, how many numbers it learns.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: There is nothing to draw, or nothing of one encoding; or ``parameters`` are no
            whole numbers from 0 on.

    Example:
        >>> ax = costs({"mine": [10.0, 12.0, 11.0]}, {"mine": 32})
        >>> float(ax.patches[0].get_width()), ax.get_yticklabels()[0].get_text()
        (11.0, 'mine (32 learned)')
    """
    if not any(in_float64(runs).size for runs in milliseconds.values()):
        raise ValueError("milliseconds is empty; give at least one encoding with a run.")
    check_whole(0, **{f"parameters[{name!r}]": count for name, count in parameters.items()})
    colors = look(theme)
    ax = new_axes(7.0, 1.0 + 0.32 * len(milliseconds), colors) if ax is None else ax
    for row, (name, runs) in enumerate(milliseconds.items()):
        values = numbers(runs, f"milliseconds of {name}", 1)
        ax.barh(row, median(values), height=0.6, color=colors.lines[0], alpha=0.35)
        ax.scatter(
            values, [row] * len(values), s=14, alpha=0.7, color=colors.lines[0], linewidths=0
        )
    learned = (
        f" ({parameters[name]} learned)" if parameters.get(name) else "" for name in milliseconds
    )
    names = [f"{name}{more}" for name, more in zip(milliseconds, learned, strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("processor time of a training step (ms)")
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    dress(ax, colors)
    return ax
