"""What a training step costs, encoding by encoding."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, finished, numbers, opened


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

    Example:
        >>> ax = costs({"mine": [10.0, 12.0, 11.0]}, {"mine": 32})
        >>> float(ax.patches[0].get_width()), ax.get_yticklabels()[0].get_text()
        (11.0, 'mine (32 learned)')
    """
    ax, colors = opened(ax, theme, 7.0, 1.0 + 0.32 * len(milliseconds))
    color, names = colors.lines[0], []
    for row, (name, runs) in enumerate(milliseconds.items()):
        values = numbers(runs, f"milliseconds of {name}", 1)
        ax.barh(row, np.median(values), height=0.6, color=color, alpha=0.35)
        ax.scatter(values, [row] * len(values), s=14, alpha=0.7, color=color, linewidths=0)
        names.append(f"{name} ({parameters[name]} learned)" if parameters.get(name) else name)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)
    return finished(ax, colors, title, "processor time of a training step (ms)")
