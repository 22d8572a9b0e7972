"""How long each pair of channels takes for one turn, and how scaled schedules change that."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from posenc.plots.style import Drawing, Shown, in_float64, numbers, opened


def wavelengths(
    schedules: Mapping[str, Sequence[float]],
    *,
    trained_length: int | None = None,
    target_length: int | None = None,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws wavelengths over the pair, on a logarithmic axis, with both lengths as lines.

    A pair whose wavelength lies above the trained length never made a full turn in training.
    Pairs that do not turn are left out; of those that turn backwards the size is drawn.

    Args:
        schedules: Wavelengths in positions, by name: ``schedule.wavelengths()``.
        trained_length: L0, in positions.
        target_length: The length it is extended to, in positions.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> ax = wavelengths({"plain": Geometric(8).wavelengths()}, trained_length=100)
        >>> ax.get_yscale(), ax.get_ylabel()
        ('log', 'wavelength (positions per turn)')
    """
    ax, colors, drawing = opened(7.0, 4.2, **shown)
    for turn, (name, values) in enumerate(schedules.items()):
        lengths = np.abs(in_float64(values))
        pairs = np.flatnonzero(np.isfinite(lengths))
        ax.plot(pairs, lengths[pairs], linewidth=1.6, label=name, **colors.dashed(turn))
    ax.set_yscale("log")
    _draw_lengths(drawing, trained_length, target_length)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    drawing.legend(loc="lower right")
    return drawing.finished("pair of channels (index)", "wavelength (positions per turn)")


def _draw_lengths(drawing: Drawing, trained: int | None, target: int | None) -> None:
    """The trained and the target length as lines with their names, one where they are the same."""
    named = [(trained, "trained length"), (target, "target length")]
    if trained == target:
        named = [(trained, "trained and target length")]
    known = sorted((length, name) for length, name in named if length is not None)
    for place, (length, name) in enumerate(known, 1):
        drawing.ax.axhline(
            length, color=drawing.colors.ink, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0
        )
        # On the outer sides of two lines, which may stand next to each other.
        side = "bottom" if place == len(known) else "top"
        across = drawing.ax.get_yaxis_transform()
        drawing.write(0.01, length, f"{name} {length:,}", ha="left", va=side, transform=across)


def scaling(
    plain: Sequence[float],
    scaled: Mapping[str, Sequence[float]],
    *,
    trained_length: int,
    factor: float | None = None,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws how many times longer each wavelength becomes, over the turns it made in training.

    Pairs at the left never completed a turn in the trained length: an extension must stretch them.
    Those at the right are fast, and tell neighbors apart. Backward pairs stand where others do.

    Args:
        plain: Wavelengths before, in positions.
        scaled: Wavelengths after, by the name of the schedule.
        trained_length: L0, in positions.
        factor: The stretch that is asked for, as a line.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> before, after = Geometric(8), Linear(Geometric(8), 4.0)
        >>> ax = scaling(before.wavelengths(), {"linear": after.wavelengths()}, trained_length=100)
        >>> [round(float(y), 6) for y in ax.lines[0].get_ydata()]
        [4.0, 4.0, 4.0, 4.0]
    """
    lengths = numbers(plain, "plain", 1)
    turns = trained_length / np.abs(lengths)
    ax, colors, drawing = opened(7.0, 4.2, **shown)
    for turn, (name, after) in enumerate(scaled.items()):
        style = {"linewidth": 1.6, "marker": "o", "markersize": 2.5, **colors.dashed(turn)}
        ax.plot(turns, numbers(after, name, 1) / lengths, label=name, **style)
    ax.set_xscale("log")
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.axvline(1.0, color=colors.ink, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
    upward = {"ha": "left", "va": "baseline", "transform": ax.get_xaxis_transform()}
    drawing.write(1.0, 0.02, " one turn", **upward)
    if factor is not None:
        ax.axhline(factor, color=colors.faint, linewidth=1.0, zorder=0)
    drawing.legend()
    xlabel = f"turns in the trained length of {trained_length:,} positions"
    return drawing.finished(xlabel, "wavelength after / before")
