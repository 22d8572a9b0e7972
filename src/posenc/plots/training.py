"""What the lab measures: scores, differences, losses and costs, with every seed."""

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import MARKS, Drawing, Shown, numbers, opened

Interval = tuple[float, float, float]
SPREAD = 0.06  # octaves between the encodings of one length, which stand side by side
ASIDE = 0.025  # octaves between seeds and their interval


def length_curve(
    scores: Mapping[str, Mapping[float, Sequence[float]]],
    middles: Mapping[str, Mapping[float, Interval]],
    *,
    measure: str = "accuracy",
    chance: float | None = None,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws scores over length ÷ trained length: a dot a seed, a line and interval through them.

    Args:
        scores: By encoding and length ratio, one number a seed.
        middles: By encoding and length ratio: value, lower and upper end of its interval.
        measure: What a score is.
        chance: The score of one who guesses; a dotted line.

    Example:
        >>> ax = length_curve({"mine": {1: [0.9, 1.0], 8: [0.5, 0.7]}},
        ...     {"mine": {1: (0.95, 0.9, 1.0), 8: (0.6, 0.5, 0.7)}})
        >>> ax.get_xlabel(), len(ax.collections[0].get_offsets())
        ('length ÷ trained length', 4)
    """
    ax, colors, drawing = opened(7.0, 4.2, **shown)
    named = []
    for turn, (name, by_ratio) in enumerate(scores.items()):
        shift = 2 ** (SPREAD * (turn - (len(scores) - 1) / 2))
        marker, style = MARKS[turn // len(colors.lines) % 4], colors.told_apart(turn)
        points = [(ratio, each) for ratio, seeds in sorted(by_ratio.items()) for each in seeds]
        x, y = numbers(points, f"scores of {name}", 2).T
        dots = {"color": colors.line(turn), "marker": marker, "alpha": 0.6, "linewidths": 0}
        # A little to the left, so that the interval does not cover them.
        ax.scatter(x * shift * 2**-ASIDE, y, s=16, **dots)
        if middle := sorted(middles.get(name, {}).items()):
            places = [ratio * shift for ratio, _ in middle]
            values, ends = _intervals([interval for _, interval in middle])
            style |= {"marker": marker, "markersize": 5, "linewidth": 1.5, "capsize": 2}
            named.append(ax.errorbar(places, values, yerr=ends, label=name, **style))
    ratios = sorted({ratio for by_ratio in scores.values() for ratio in by_ratio})
    ax.set_xscale("log", base=2)
    ax.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    ax.minorticks_off()
    if chance is not None:
        line = {"linewidth": 0.8, "linestyle": ":", "label": "chance", "zorder": 0}
        named.append(ax.axhline(chance, color=colors.ink, **line))
    _grid(drawing, "y")
    drawing.legend_beside(handles=named)
    return drawing.finished("length ÷ trained length", measure)


def paired_differences(
    differences: Mapping[str, Sequence[float]],
    intervals: Mapping[str, Interval],
    *,
    label: str = "difference",
    **shown: Unpack[Shown],
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
    ax, colors, drawing = opened(7.0, 1.0 + 0.32 * len(differences), **shown)
    ax.axvline(0, color=colors.ink, linewidth=0.8)
    for row, (name, seeds) in enumerate(differences.items()):
        values = numbers(seeds, f"differences of {name}", 1)
        color = colors.lines[0] if values.mean() >= 0 else colors.lines[1]
        ax.scatter(values, [row] * len(values), s=16, alpha=0.55, color=color, linewidths=0)
        value, ends = _intervals([intervals[name]])
        style = {"fmt": "D", "markersize": 5, "capsize": 3, "linewidth": 1.6, "color": color}
        ax.errorbar(value, [row], xerr=ends, **style)
    _rows(ax, list(differences))
    _grid(drawing, "x")
    return drawing.finished(label)


def loss_curves(
    curves: Mapping[str, Sequence[Sequence[Sequence[float]]]], **shown: Unpack[Shown]
) -> Axes:
    """Draws training losses: each seed thin, and the median of seeds with the same steps.

    Args:
        curves: By encoding, for each seed its points [step, loss].

    Example:
        >>> ax = loss_curves({"mine": [[[1, 2.0], [2, 1.0]], [[1, 2.2], [2, 1.4]]]})
        >>> ax.get_ylabel(), [round(float(y), 2) for y in ax.lines[-1].get_ydata()]
        ('training loss (nats)', [2.1, 1.2])
    """
    ax, colors, drawing = opened(7.0, 3.6, **shown)
    for turn, (name, seeds) in enumerate(curves.items()):
        style = colors.told_apart(turn)
        drawn = [numbers(points, f"a seed of {name}", 2) for points in seeds]
        for points in drawn:
            ax.plot(*points.T, linewidth=0.6, alpha=0.4, **style)
        told = [dict(points) for points in drawn]
        steps = [step for step in told[0] if all(step in each for each in told)]
        middle = [np.median([each[step] for each in told]) for step in steps]
        ax.plot(steps, middle, linewidth=1.7, label=name, **style)
    ax.set_yscale("log")
    drawing.legend_beside()
    return drawing.finished("step", "training loss (nats)")


def costs(
    milliseconds: Mapping[str, Sequence[float]],
    parameters: Mapping[str, int],
    **shown: Unpack[Shown],
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
    ax, colors, drawing = opened(7.0, 1.0 + 0.32 * len(milliseconds), **shown)
    color, names = colors.lines[0], []
    for row, (name, runs) in enumerate(milliseconds.items()):
        values = numbers(runs, f"milliseconds of {name}", 1)
        ax.barh(row, np.median(values), height=0.6, color=color, alpha=0.35)
        ax.scatter(values, [row] * len(values), s=14, alpha=0.7, color=color, linewidths=0)
        names.append(f"{name} ({parameters[name]} learned)" if parameters.get(name) else name)
    _rows(ax, names)
    ax.set_xlim(left=0)
    return drawing.finished("processor time of a training step (ms)")


def _intervals(intervals: Sequence[Interval]) -> tuple[np.ndarray, np.ndarray]:
    """Values, and how far each interval goes below and above."""
    value, low, high = np.array(intervals, dtype=np.float64).T
    return value, np.stack((value - low, high - value)).clip(min=0)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    """A row a name, the first at the top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)


def _grid(drawing: Drawing, axis: Literal["x", "y"]) -> None:
    drawing.ax.grid(axis=axis, color=drawing.colors.faint, linewidth=0.6)
    drawing.ax.set_axisbelow(True)
