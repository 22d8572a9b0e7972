"""What scaled schedules do to each pair: which they keep, which they stretch."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc.plots.style import Theme, dashed, finished, key, numbers, opened


def scaling(
    plain: Sequence[float],
    scaled: Mapping[str, Sequence[float]],
    *,
    trained_length: int,
    factor: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws how many times longer each wavelength becomes, over the turns it made in training.

    To the left stand pairs that never completed a turn in the trained length; these are what an
    extension must stretch. To the right are the fast ones, which tell neighbors apart. Pairs that
    turn backwards have negative wavelengths, and stand where others of that size do.

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
    ax, colors = opened(ax, theme, 7.0, 4.2)
    for turn, (name, after) in enumerate(scaled.items()):
        style = {"linewidth": 1.6, "marker": "o", "markersize": 2.5, **dashed(turn, colors)}
        ax.plot(turns, numbers(after, name, 1) / lengths, label=name, **style)
    ax.set_xscale("log")
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.axvline(1.0, color=colors.ink, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
    ax.annotate(
        " one turn", (1.0, 0.02), xycoords=("data", "axes fraction"), fontsize="small",
        color=colors.ink,
    )  # fmt: skip
    if factor is not None:
        ax.axhline(factor, color=colors.faint, linewidth=1.0, zorder=0)
    key(ax)
    xlabel = f"turns in the trained length of {trained_length:,} positions"
    return finished(ax, colors, title, xlabel, "wavelength after / before")
