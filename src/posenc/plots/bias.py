"""What a relative bias adds to scores at each distance, head by head."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from posenc.plots.style import DASHES, Shown, numbers, opened

# Distances this near have as much room each as all farther ones have by ratio.
NEAR = 16

# Heads whose sizes differ by more than this would lie on each other on a linear axis.
APART = 16.0


def bias(
    profile: ArrayLike,
    distances: ArrayLike,
    *,
    heads: Sequence[int] | None = None,
    random: bool = False,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws the profile of a bias: one line a head over the distance query − key.

    The axis of distances is linear near zero and logarithmic beyond where buckets reach far; that
    of the bias is logarithmic where one head's is many times another's. Each label says so.

    Args:
        profile: [heads, distances], in nats: natural logarithms of weights, as scores are.
        distances: [distances], in positions; negative ones are keys after their query.
        heads: The number of each head; 0, 1, 2, … if not given.
        random: Whether the numbers are learned ones that were not trained; it is said so.

    Example:
        >>> import torch
        >>> from posenc import ALiBi
        >>> distance = torch.arange(-5, 6)
        >>> ax = bias(ALiBi(4).profile(distance), distance)
        >>> len(ax.lines) - 1, ax.get_xlabel()
        (4, 'distance query − key (positions)')
    """
    values, places = numbers(profile, "profile", 2), numbers(distances, "distances", 1)
    if random:
        told = shown.get("title"), "seeded random numbers, not learned"
        shown["title"] = "\n".join(filter(None, told))
    ax, colors, drawing = opened(7.0, 4.2, **shown)
    ax.axvline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    # Neighbors often share a number, as distances of one bucket do.
    are_buckets = values.shape[1] > 2 and (np.diff(values, axis=1) == 0).mean() > 0.25
    count = len(values)
    palette, how = colors.lines, "steps-mid" if are_buckets else "default"
    if count > len(palette):
        palette = LinearSegmentedColormap.from_list("heads", palette[:2])(np.linspace(0, 1, count))
    for index, row in enumerate(values):
        name, style = f"head {index if heads is None else heads[index]}", DASHES[index % 4]
        ax.plot(places, row, style, color=palette[index], linewidth=1.6, drawstyle=how, label=name)
    xlabel, ylabel = "distance query − key (positions)", "added to the score (nats)"
    if are_buckets and np.abs(places).max() > 2 * NEAR:
        _bend_distances(ax, places)
        xlabel += f"; logarithmic beyond {NEAR}"
    sizes = np.abs(values).max(axis=1)
    if sizes.min() > 0 and sizes.max() / sizes.min() > APART:
        ax.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(sizes.min() / 4)), linscale=0.6)
        ax.yaxis.set_major_formatter("{x:g}")
        ylabel += "; logarithmic"
    drawing.legend_beside()
    return drawing.finished(xlabel, ylabel)


def _bend_distances(ax: Axes, places: np.ndarray) -> None:
    """Makes the axis logarithmic beyond the near distances."""
    ax.set_xscale("symlog", base=2, linthresh=NEAR, linscale=2.0)
    powers = [2**n for n in range(1, int(np.abs(places).max()).bit_length())]
    ax.set_xticks([*(-power for power in powers[::-1]), 0, *powers])
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlim(places.min(), places.max())
    ax.tick_params(axis="x", labelsize="small")
