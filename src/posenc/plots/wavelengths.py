"""How long each pair of channels takes for one turn."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from posenc.plots.style import Look, Theme, dashed, finished, in_float64, key, opened


def wavelengths(
    schedules: Mapping[str, Sequence[float]],
    *,
    trained_length: int | None = None,
    target_length: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws wavelengths over the pair, on a logarithmic axis, with both lengths as lines.

    A pair whose wavelength lies above the trained length never made a full turn in training.
    Pairs that do not turn at all are left out; of those that turn backwards, whose wavelengths are
    negative, the size is drawn.

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
    ax, colors = opened(ax, theme, 7.0, 4.2)
    for turn, (name, values) in enumerate(schedules.items()):
        lengths = np.abs(in_float64(values))
        pairs = np.flatnonzero(np.isfinite(lengths))
        ax.plot(pairs, lengths[pairs], linewidth=1.6, label=name, **dashed(turn, colors))
    ax.set_yscale("log")
    _draw_lengths(ax, colors, trained_length, target_length)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    key(ax, loc="lower right")
    return finished(
        ax, colors, title, "pair of channels (index)", "wavelength (positions per turn)"
    )


def _draw_lengths(ax: Axes, colors: Look, trained: int | None, target: int | None) -> None:
    """The trained and the target length as lines with their names, one where they are the same."""
    named = [(trained, "trained length"), (target, "target length")]
    if trained == target:
        named = [(trained, "trained and target length")]
    known = sorted((length, name) for length, name in named if length is not None)
    for place, (length, name) in enumerate(known, 1):
        ax.axhline(length, color=colors.ink, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
        ax.annotate(
            f"{name} {length:,}",
            (0.01, length),
            xycoords=("axes fraction", "data"),
            # On the outer sides of two lines, which may stand next to each other.
            va="bottom" if place == len(known) else "top",
            fontsize="small",
            color=colors.ink,
        )
