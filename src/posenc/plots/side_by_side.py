"""Matrices beside each other in one picture: sums, bits, and attention with its difference.

Where there are fewer pixels than cells, each shows the mean of several, and the picture says so.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from posenc.arguments import check_whole
from posenc.plots.cells import cells, fitted
from posenc.plots.style import Look, Theme, bar, dress, look, new_axes, numbers, reach


def embedding_sum(
    embedding: ArrayLike,
    encoding: ArrayLike,
    *,
    tokens: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws embedding, encoding and their sum, in one scale centered at zero.

    Args:
        embedding: [tokens, dim].
        encoding: [tokens, dim], likewise.
        tokens: The words of the rows.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: The shapes do not fit each other.

    Example:
        >>> ax = embedding_sum([[0.5, -1.0]], [[0.0, 1.0]])
        >>> ax.images[2].get_array().tolist()
        [[0.5, 0.0]]
    """
    one, other = numbers(embedding, "embedding", 2), numbers(encoding, "encoding", 2)
    if one.shape != other.shape:
        raise ValueError(
            f"embedding has shape {list(one.shape)} and encoding {list(other.shape)}; they must be "
            f"alike."
        )
    colors, parts = look(theme), (one, other, one + other)
    ax = new_axes(10.0, 0.32 * len(one) + 1.6, colors) if ax is None else ax
    most = max(np.abs(part).max() for part in parts) or 1.0
    names = ("embedding", "+ encoding", "= sum")
    images = _beside(ax, parts, names, colors, (colors.signed,) * 3, ((-most, most),) * 3)
    bar(images[0], ax, "value", colors)
    ax.set_xlabel("dimension (each block from 0)")
    _rows(ax, tokens, len(one), "token")
    return _finished(ax, title, colors)


def binary_comparison(
    sines: ArrayLike,
    *,
    bits: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws positions as binary numbers beside waves: both have fast columns and slow ones.

    Args:
        sines: [positions, columns], values in [−1, 1], the fast ones first.
        bits: How many binary digits; as many as the last position needs if not given.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: It is no matrix, or ``bits`` no whole number from 1 on.

    Example:
        >>> ax = binary_comparison([[0.0], [0.84], [0.91], [0.14]])
        >>> ax.images[0].get_array().tolist()
        [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    values = numbers(sines, "sines", 2)
    digits = max(1, (len(values) - 1).bit_length()) if bits is None else bits
    check_whole(bits=digits)
    binary = 2.0 * (np.arange(len(values))[:, None] >> np.arange(digits) & 1) - 1
    colors = look(theme)
    ax = new_axes(8.0, max(3.0, 0.2 * len(values) + 1.2), colors) if ax is None else ax
    names = ("binary digits, lowest first", "waves, fastest first")
    most = reach(values)
    ends = ((-most, most),) * 2
    images = _beside(ax, (binary, values), names, colors, (colors.signed,) * 2, ends)
    bar(images[1], ax, "value; digits 0 and 1 stand at −1 and 1", colors)
    ax.set_xlabel("column (each block from 0)")
    _rows(ax, None, len(values), "position (token)")
    return _finished(ax, title, colors)


def attention(
    without: ArrayLike,
    with_encoding: ArrayLike,
    *,
    tokens: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws attention weights without and with an encoding, and their difference.

    Each color bar stands beside what it measures: one for both pictures of weights, one for the
    difference.

    Args:
        without: [queries, keys], weights from 0 to 1.
        with_encoding: [queries, keys], likewise.
        tokens: The words, of queries and keys alike; there is one for each query, and the keys
            are the same ones.
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: The shapes do not fit each other.

    Example:
        >>> ax = attention([[0.5, 0.5]], [[0.75, 0.25]])
        >>> ax.images[2].get_array().tolist()
        [[0.25, -0.25]]
    """
    off, on = numbers(without, "without", 2), numbers(with_encoding, "with_encoding", 2)
    if off.shape != on.shape:
        raise ValueError(
            f"without has shape {list(off.shape)} and with_encoding {list(on.shape)}; they must be "
            f"alike."
        )
    colors, change = look(theme), on - off
    ax = new_axes(11.0, 0.42 * len(off) + 2.1, colors) if ax is None else ax
    most, far = max(off.max(), on.max()), np.abs(change).max() or 1.0
    keys = list(tokens) if tokens is not None and off.shape[1] == len(tokens) else None
    _beside(
        ax,
        (off, on, change),
        ("without encoding", "with encoding", "difference"),
        colors,
        ("cividis", "cividis", colors.signed),
        ((0.0, most), (0.0, most), (-far, far)),
        columns=keys,
        bars=("", "weight", "difference"),
    )
    ax.set_xlabel("key" if keys else "key (each block from 0)")
    _rows(ax, tokens, len(off), "query")
    return _finished(ax, title, colors)


def _beside(
    ax: Axes,
    parts: Sequence[np.ndarray],
    names: Sequence[str],
    colors: Look,
    maps: Sequence[Colormap | str],
    limits: Sequence[tuple[float, float]],
    *,
    columns: Sequence[str] | None = None,
    bars: Sequence[str] = (),
) -> list[AxesImage]:
    """Each matrix with its name above, a gap between them, columns counted from 0 or by name.

    A matrix with a name in ``bars`` has its color bar at its right.
    """
    left, edge, images, ticks, labels = 0.0, 0.0, [], [], []
    for index, (part, color_map, (low, high)) in enumerate(zip(parts, maps, limits, strict=True)):
        rows, width = part.shape
        images.append(
            cells(
                ax,
                part,
                color_map,
                (low, high),
                (left - 0.5, left + width - 0.5, rows - 0.5, -0.5),
                aspect="auto",
            )
        )
        ax.text(
            left + width / 2 - 0.5, -0.75, names[index], ha="center", va="bottom",
            color=colors.ink, fontsize="small",
        )  # fmt: skip
        step = max(1, width // (16 if columns else 6))
        ticks += [left + column for column in range(0, width, step)]
        labels += [columns[column] if columns else str(column) for column in range(0, width, step)]
        left, edge = left + width, left + width
        if index < len(bars) and bars[index]:
            place = (left - 0.5 + 0.05 * width, -0.5, 0.05 * width, rows)
            _bar_beside(images[-1], ax, place, bars[index], colors)
            left, edge = left + 0.45 * width, left + 0.12 * width
        left += max(1.0, 0.06 * width)
    ax.set_xlim(-0.5, edge - 0.5)
    slanted = columns is not None and max(map(len, columns)) > 2
    ax.set_xticks(ticks, labels, rotation=45 if slanted else 0, ha="right" if slanted else "center",
                  rotation_mode="anchor")  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)
    return images


def _bar_beside(
    image: AxesImage, ax: Axes, place: tuple[float, float, float, float], label: str, colors: Look
) -> None:
    """A color bar at ``place`` (left, top, width, height), in the units of the rows and columns."""
    inner = ax.inset_axes(place, transform=ax.transData)
    scale = ax.figure.colorbar(image, cax=inner)
    scale.set_label(label, color=colors.ink)
    scale.ax.tick_params(colors=colors.ink, labelsize="small")
    scale.outline.set_edgecolor(colors.faint)  # type: ignore[operator]


def _rows(ax: Axes, tokens: Sequence[str] | None, count: int, name: str) -> None:
    ax.set_ylim(count - 0.5, -0.5)
    if tokens is None:
        step = max(1, count // 10)
        ax.set_yticks(range(0, count, step))
    elif len(tokens) != count:
        raise ValueError(f"{len(tokens)} tokens came for {count} rows; give one each.")
    else:
        ax.set_yticks(range(count), list(tokens))
    ax.set_ylabel(name)


def _finished(ax: Axes, title: str | None, colors: Look) -> Axes:
    if title:
        ax.set_title(title, fontsize="medium", pad=22, wrap=True)
    dress(ax, colors)
    fitted(ax)
    return ax
