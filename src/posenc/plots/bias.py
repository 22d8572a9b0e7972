"""What a relative bias adds to scores at each distance, head by head."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import ArrayLike

from posenc.arguments import check_flag
from posenc.plots.style import Look, Theme, check_places, dress, look, new_axes, numbers

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
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the profile of a bias: one line a head over the distance query − key.

    Axes are linear near zero and logarithmic beyond where that is needed to read them: the
    distances where they reach far (buckets are told apart near zero), and the bias where one head's
    is many times another's (slopes are told apart).

    Args:
        profile: [heads, distances], in units of scores (natural logarithms of weights).
        distances: [distances], in positions; negative ones are keys after their query.
        heads: The number of each head; 0, 1, 2, … if not given.
        random: Whether the numbers are learned ones that were not trained; it is said so.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        TypeError: The number of a head is not whole.
        ValueError: The shapes do not fit each other, ``random`` is neither true nor false, or a
            distance is beyond 10^14, where axes are no longer exact.

    Example:
        >>> import torch
        >>> from posenc import ALiBi
        >>> distance = torch.arange(-5, 6)
        >>> ax = bias(ALiBi(4).profile(distance), distance)
        >>> len(ax.lines) - 1, ax.get_xlabel()
        (4, 'distance query − key (positions)')
    """
    values, places = numbers(profile, "profile", 2), numbers(distances, "distances", 1)
    if values.shape[1] != len(places):
        raise ValueError(
            f"profile has {values.shape[1]} columns and there are {len(places)} distances; give "
            f"one each."
        )
    check_flag(random=random)
    check_places(places.min(initial=0.0), places.max(initial=0.0))
    names = range(len(values)) if heads is None else heads
    if len(names) != len(values):
        raise ValueError(f"{len(names)} heads came for {len(values)} rows; give one number each.")
    colors = look(theme)
    ax = new_axes(7.0, 4.2, colors) if ax is None else ax
    ax.axvline(0.0, color=colors.faint, linewidth=0.8, zorder=0)
    steps = _steps(values)
    for index, row in enumerate(values):
        ax.plot(
            places,
            row,
            ("-", "--", "-.", ":")[index % 4],
            color=_color(index, len(values), colors),
            linewidth=1.6,
            drawstyle="steps-mid" if steps else "default",
            label=f"head {names[index]}",
        )
    ax.set_xlabel("distance query − key (positions)")
    ax.set_ylabel("added to the score")
    _scale(ax, values, places)
    if title or random:
        note = "seeded random numbers, not learned" if random else ""
        ax.set_title("\n".join(filter(None, (title, note))), fontsize="medium", wrap=True)
    _name_ends(ax, values, places, names, colors)
    dress(ax, colors)
    return ax


def _steps(values: np.ndarray) -> bool:
    """Whether neighbors often share a number, as distances of one bucket do."""
    return values.shape[1] > 2 and float((np.diff(values, axis=1) == 0).mean()) > 0.25


def _scale(ax: Axes, values: np.ndarray, places: np.ndarray) -> None:
    """Logarithmic axes where linear ones could not be read."""
    if _steps(values) and np.abs(places).max() > 2 * NEAR:
        ax.set_xscale("symlog", base=2, linthresh=NEAR, linscale=2.0)
        reach = int(np.abs(places).max())
        powers = [2**n for n in range(1, reach.bit_length())]
        marks = [mark for power in powers for mark in (-power, power)] + [0]
        ax.xaxis.set_major_locator(FixedLocator(sorted(marks)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}".replace("-", "−")))
        ax.set_xlim(places.min(), places.max())
        ax.tick_params(axis="x", labelsize="small")
    sizes = np.abs(values).max(axis=1)
    if len(sizes) > 1 and sizes.min() > 0 and sizes.max() / sizes.min() > APART:
        least = 10.0 ** np.floor(np.log10(sizes.min() / 4))
        ax.set_yscale("symlog", linthresh=least, linscale=0.6)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".replace("-", "−")))
        ax.set_ylabel("added to the score (logarithmic axis)")


def _color(index: int, count: int, colors: Look) -> str | tuple[float, float, float]:
    if count <= len(colors.lines):
        return colors.lines[index]
    return look_between(colors.lines[0], colors.lines[1], index / (count - 1))


def _name_ends(
    ax: Axes, values: np.ndarray, places: np.ndarray, names: Sequence[int], colors: Look
) -> None:
    """The heads by name, in the order in which their lines end at the right."""
    handles, labels = ax.get_legend_handles_labels()
    order = np.argsort(-values[:, int(places.argmax())], kind="stable")
    legend = ax.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize="small",
    )
    for text in legend.get_texts():
        text.set_color(colors.ink)


def look_between(one: str, other: str, share: float) -> tuple[float, float, float]:
    """A color between two.

    Example:
        >>> look_between("#000000", "#ffffff", 0.5)
        (0.5, 0.5, 0.5)
    """
    first, second = (
        np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for color in (one, other)
    )
    red, green, blue = first + share * (second - first)
    return float(red), float(green), float(blue)
