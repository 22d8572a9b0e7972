"""Tokens and matrices beside each other: sums, norms, bits, and attention with its difference."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from posenc.plots.style import (
    Look,
    Shown,
    bar,
    finished,
    key,
    numbers,
    opened,
    picture,
    reach,
    write,
)


def embedding_sum(
    embedding: ArrayLike,
    encoding: ArrayLike,
    *,
    tokens: Sequence[str] | None = None,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws embedding, encoding and their sum, in one scale centered at zero.

    Args:
        embedding: [tokens, dim].
        encoding: [tokens, dim], likewise.
        tokens: The words of the rows.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = embedding_sum([[0.5, -1.0]], [[0.0, 1.0]])
        >>> ax.images[2].get_array().tolist()
        [[0.5, 0.0]]
    """
    one, other = numbers(embedding, "embedding", 2), numbers(encoding, "encoding", 2)
    parts = np.stack((one, other, one + other))
    ax, colors, title = opened(10.0, 0.32 * len(one) + 1.6, **shown)
    most = float(np.abs(parts).max()) or 1.0
    names = ("embedding", "+ encoding", "= sum")
    images = _beside(ax, parts, names, colors, (colors.signed,) * 3, ((-most, most),) * 3)
    bar(images[0], "value", colors, parts, ax=ax)
    _name_rows(ax, tokens, len(one))
    return finished(ax, colors, title, "dimension (each block from 0)", "token", pad=22)


def binary_comparison(sines: ArrayLike, *, bits: int | None = None, **shown: Unpack[Shown]) -> Axes:
    """Draws positions as binary numbers beside waves: both have fast columns and slow ones.

    Args:
        sines: [positions, columns], values in [−1, 1], the fast ones first.
        bits: How many binary digits; as many as the last position needs if not given.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = binary_comparison([[0.0], [0.84], [0.91], [0.14]])
        >>> ax.images[0].get_array().tolist()
        [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    values = numbers(sines, "sines", 2)
    digits = max(1, (len(values) - 1).bit_length()) if bits is None else bits
    binary = 2.0 * (np.arange(len(values))[:, None] >> np.arange(digits) & 1) - 1
    ax, colors, title = opened(8.0, max(3.0, 0.2 * len(values) + 1.2), **shown)
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
    **shown: Unpack[Shown],
) -> Axes:
    """Draws attention weights without and with an encoding, and their difference.

    Args:
        without: [queries, keys], weights from 0 to 1.
        with_encoding: [queries, keys], likewise.
        tokens: The words, of queries and keys alike.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = attention([[0.5, 0.5]], [[0.75, 0.25]])
        >>> ax.images[2].get_array().tolist()
        [[0.25, -0.25]]
    """
    off, on = numbers(without, "without", 2), numbers(with_encoding, "with_encoding", 2)
    parts = np.stack((off, on, on - off))
    ax, colors, title = opened(11.0, 0.42 * len(off) + 2.1, **shown)
    most, far = float(parts[:2].max()), float(np.abs(parts[2]).max()) or 1.0
    keys = tokens if tokens is not None and off.shape[1] == len(tokens) else None
    names, maps = ("without encoding", "with encoding", "difference"), ("cividis", "cividis")
    limits, bars = ((0.0, most), (0.0, most), (-far, far)), ("", "weight", "difference")
    _beside(ax, parts, names, colors, (*maps, colors.signed), limits, columns=keys, bars=bars)
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
        write(ax, left + width / 2 - 0.5, -0.75, name, colors, va="bottom")
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
    turned = {"rotation": 45, "ha": "right"} if slanted else {"rotation": 0, "ha": "center"}
    ax.set_xticks(ticks, labels, rotation_mode="anchor", **turned)
    ax.spines[:].set_visible(False)
    return images


def _name_rows(ax: Axes, tokens: Sequence[str] | None, count: int) -> None:
    ax.set_ylim(count - 0.5, -0.5)
    if tokens is None:
        ax.set_yticks(range(0, count, max(1, count // 10)))
    else:
        ax.set_yticks(range(count), tokens)


def norms(
    embedding: ArrayLike,
    encoding: ArrayLike,
    *,
    tokens: Sequence[str] | None = None,
    **shown: Unpack[Shown],
) -> Axes:
    """Draws the length of each token's embedding beside that of its encoding, as bars.

    Args:
        embedding: [tokens], Euclidean norms without a unit (scaled by √d or not, as it is used).
        encoding: [tokens], likewise.
        tokens: The words.
        shown: ``title``, ``ax`` to draw on, and ``theme``: light or dark.

    Example:
        >>> ax = norms([22.6, 22.1], [16.0, 16.0])
        >>> [round(float(bar.get_height()), 1) for bar in ax.patches]
        [22.6, 22.1, 16.0, 16.0]
    """
    one, other = numbers(embedding, "embedding", 1), numbers(encoding, "encoding", 1)
    ax, colors, title = opened(max(5.0, 0.8 * len(one)), 3.8, **shown)
    places = np.arange(len(one))
    ax.bar(places - 0.2, one, 0.38, color=colors.lines[0], label="embedding")
    hatched = {"hatch": "//", "edgecolor": colors.ground, "linewidth": 0.0}
    ax.bar(places + 0.2, other, 0.38, color=colors.lines[1], label="encoding", **hatched)
    ax.set_xticks(places, places.astype(str).tolist() if tokens is None else tokens)
    ax.set_ylim(0.0, 1.25 * max(one.max(), other.max()))
    key(ax, loc="upper right", ncols=2)
    return finished(ax, colors, title, "token", "Euclidean norm")
