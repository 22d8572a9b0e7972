"""Matrices beside each other in one picture: sums, bits, and attention with its difference."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from posenc.plots.style import Look, Theme, bar, finished, numbers, opened, picture, reach


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

    Example:
        >>> ax = embedding_sum([[0.5, -1.0]], [[0.0, 1.0]])
        >>> ax.images[2].get_array().tolist()
        [[0.5, 0.0]]
    """
    one, other = numbers(embedding, "embedding", 2), numbers(encoding, "encoding", 2)
    parts = np.stack((one, other, one + other))
    ax, colors = opened(ax, theme, 10.0, 0.32 * len(one) + 1.6)
    most = float(np.abs(parts).max()) or 1.0
    names = ("embedding", "+ encoding", "= sum")
    images = _beside(ax, parts, names, colors, (colors.signed,) * 3, ((-most, most),) * 3)
    bar(images[0], "value", colors, parts, ax=ax)
    _name_rows(ax, tokens, len(one))
    return finished(ax, colors, title, "dimension (each block from 0)", "token", pad=22)


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

    Example:
        >>> ax = binary_comparison([[0.0], [0.84], [0.91], [0.14]])
        >>> ax.images[0].get_array().tolist()
        [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    values = numbers(sines, "sines", 2)
    digits = max(1, (len(values) - 1).bit_length()) if bits is None else bits
    binary = 2.0 * (np.arange(len(values))[:, None] >> np.arange(digits) & 1) - 1
    ax, colors = opened(ax, theme, 8.0, max(3.0, 0.2 * len(values) + 1.2))
    names, most = ("binary digits, lowest first", "waves, fastest first"), reach(values)
    limits, maps = ((-most, most),) * 2, (colors.signed,) * 2
    images = _beside(ax, (binary, values), names, colors, maps, limits)
    bar(images[1], "value; digits 0 and 1 stand at −1 and 1", colors, ax=ax)
    _name_rows(ax, None, len(values))
    return finished(ax, colors, title, "column (each block from 0)", "position (token)", pad=22)


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

    Example:
        >>> ax = attention([[0.5, 0.5]], [[0.75, 0.25]])
        >>> ax.images[2].get_array().tolist()
        [[0.25, -0.25]]
    """
    off, on = numbers(without, "without", 2), numbers(with_encoding, "with_encoding", 2)
    parts = np.stack((off, on, on - off))
    ax, colors = opened(ax, theme, 11.0, 0.42 * len(off) + 2.1)
    most, far = float(parts[:2].max()), float(np.abs(parts[2]).max()) or 1.0
    keys = tokens if tokens is not None and off.shape[1] == len(tokens) else None
    _beside(
        ax,
        parts,
        ("without encoding", "with encoding", "difference"),
        colors,
        ("cividis", "cividis", colors.signed),
        ((0.0, most), (0.0, most), (-far, far)),
        columns=keys,
        bars=("", "weight", "difference"),
    )
    _name_rows(ax, tokens, len(off))
    label = "key" if keys else "key (each block from 0)"
    return finished(ax, colors, title, label, "query", pad=22)


def _beside(
    ax: Axes,
    parts: Sequence[np.ndarray] | np.ndarray,
    names: Sequence[str],
    colors: Look,
    maps: Sequence[Colormap | str],
    limits: Sequence[tuple[float, float]],
    *,
    columns: Sequence[str] | None = None,
    bars: Sequence[str] = ("", "", ""),
) -> list[AxesImage]:
    """Each matrix with its name above, a gap between them, columns counted from 0 or by name.

    A matrix with a name in ``bars`` has its color bar at its right.
    """
    left, edge, images, ticks, labels = 0.0, 0.0, [], [], []
    for part, name, cmap, ends, label in zip(parts, names, maps, limits, bars, strict=False):
        rows, width = part.shape
        extent = (left - 0.5, left + width - 0.5, rows - 0.5, -0.5)
        images.append(picture(ax, part, cmap, ends, extent, "auto"))
        ax.text(left + width / 2 - 0.5, -0.75, name, ha="center", va="bottom", color=colors.ink,
                fontsize="small")  # fmt: skip
        shown = range(0, width, max(1, width // (16 if columns else 6)))
        ticks += [left + column for column in shown]
        labels += [columns[column] if columns else str(column) for column in shown]
        left = edge = left + width
        if label:
            place = (left - 0.5 + 0.05 * width, -0.5, 0.05 * width, rows)
            inner = ax.inset_axes(place, transform=ax.transData)
            alike = [each.ravel() for each, of in zip(parts, limits, strict=True) if of == ends]
            bar(images[-1], label, colors, np.concatenate(alike), cax=inner)
            inner.tick_params(labelsize="small")
            left, edge = left + 0.45 * width, left + 0.12 * width
        left += max(1.0, 0.06 * width)
    ax.set_xlim(-0.5, edge - 0.5)
    slanted = columns is not None and max(map(len, columns)) > 2
    ax.set_xticks(ticks, labels, rotation=45 if slanted else 0, ha="right" if slanted else "center",
                  rotation_mode="anchor")  # fmt: skip
    ax.spines[:].set_visible(False)
    return images


def _name_rows(ax: Axes, tokens: Sequence[str] | None, count: int) -> None:
    ax.set_ylim(count - 0.5, -0.5)
    if tokens is None:
        ax.set_yticks(range(0, count, max(1, count // 10)))
    else:
        ax.set_yticks(range(count), tokens)
