"""What scaled schedules do to each pair: which they keep, which they stretch."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc.arguments import check_whole
from posenc.plots.style import Theme, dress, key, look, new_axes, numbers


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
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: Nothing is given, the numbers of pairs differ, a wavelength is 0 or changes its
            sign, or ``trained_length`` is no whole number from 1 on.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> before, after = Geometric(8), Linear(Geometric(8), 4.0)
        >>> ax = scaling(before.wavelengths(), {"linear": after.wavelengths()}, trained_length=100)
        >>> [round(float(y), 6) for y in ax.lines[0].get_ydata()]
        [4.0, 4.0, 4.0, 4.0]
    """
    check_whole(trained_length=trained_length)
    lengths = numbers(plain, "plain", 1)
    if not lengths.all():
        raise ValueError(f"plain is {list(plain)}; a wavelength of 0 has no ratio.")
    if not scaled or any(len(after) != len(lengths) for after in scaled.values()):
        raise ValueError(
            f"scaled must hold wavelengths for all {len(lengths)} pairs, by name; it has "
            f"{ ({name: len(after) for name, after in scaled.items()}) }."
        )
    ratios = {name: numbers(after, name, 1) / lengths for name, after in scaled.items()}
    if turned := [name for name, times in ratios.items() if (times <= 0).any()]:
        raise ValueError(
            f"{turned[0]!r} has a wavelength of 0 or one whose sign is not that of plain; a "
            f"ratio that is not positive cannot stand on a logarithmic axis."
        )
    colors = look(theme)
    ax = new_axes(7.0, 4.2, colors) if ax is None else ax
    turns = trained_length / np.abs(lengths)
    for turn, (name, times) in enumerate(ratios.items()):
        ax.plot(
            turns,
            times,
            ("-", "--", "-.", ":")[turn % 4],
            color=colors.lines[turn % len(colors.lines)],
            linewidth=1.6,
            marker="o",
            markersize=2.5,
            label=name,
        )
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
    ax.set_xlabel(f"turns in the trained length of {trained_length:,} positions")
    ax.set_ylabel("wavelength after / before")
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors)
    dress(ax, colors)
    return ax
