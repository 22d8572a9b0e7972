"""Tokens and matrices beside each other: sums, norms, bits, and attention with its difference."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from numpy.typing import ArrayLike

from posenc.plots.style import Drawing, Shown, numbers, opened, reach

Words = Sequence[str] | None


def embedding_sum(
    embedding: ArrayLike, encoding: ArrayLike, *, tokens: Words = None, **shown: Unpack[Shown]
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
    parts = {"embedding": one, "+ encoding": other, "= sum": one + other}
    every = np.stack([*parts.values()])
    most = float(np.abs(every).max()) or 1.0
    ax, _, drawing = opened(10.0, 0.32 * len(one) + 1.6, **shown)
    _draw_beside(drawing, parts, [(-most, most)] * 3, tokens)
    drawing.bar(ax.images[-1], "value", every)
    return drawing.finished("dimension (each block from 0)", "token", pad=22)


def binary_comparison(sines: ArrayLike, *, bits: int | None = None, **shown: Unpack[Shown]) -> Axes:
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
    ax, _, drawing = opened(8.0, max(3.0, 0.2 * len(values) + 1.2), **shown)
    parts = {"binary digits, lowest first": binary, "waves, fastest first": values}
    most = reach(values)
    _draw_beside(drawing, parts, [(-most, most)] * 2)
    drawing.bar(ax.images[-1], "value; digits 0 and 1 stand at −1 and 1")
    return drawing.finished("column (each block from 0)", "position (token)", pad=22)


def attention(
    without: ArrayLike, with_encoding: ArrayLike, *, tokens: Words = None, **shown: Unpack[Shown]
) -> Axes:
    """Draws attention weights without and with an encoding, and their difference.

    Args:
        without: [queries, keys], weights from 0 to 1.
        with_encoding: [queries, keys], likewise.
        tokens: The words, of queries and keys alike.

    Example:
        >>> ax = attention([[0.5, 0.5]], [[0.75, 0.25]])
        >>> ax.images[2].get_array().tolist()
        [[0.25, -0.25]]
    """
    off, on = numbers(without, "without", 2), numbers(with_encoding, "with_encoding", 2)
    parts = {"without encoding": off, "with encoding": on, "difference": on - off}
    most, far = float(max(off.max(), on.max())), float(np.abs(on - off).max()) or 1.0
    limits, bars = [(0.0, most), (0.0, most), (-far, far)], ("", "weight", "difference")
    keys = tokens if tokens is not None and off.shape[1] == len(tokens) else None
    _, colors, drawing = opened(11.0, 0.42 * len(off) + 2.1, **shown)
    maps = ("cividis", "cividis", colors.signed)
    _draw_beside(drawing, parts, limits, tokens, columns=keys, maps=maps, bars=bars)
    return drawing.finished("key" if keys else "key (each block from 0)", "query", pad=22)


def _draw_beside(
    drawing: Drawing,
    parts: Mapping[str, np.ndarray],
    limits: Sequence[tuple[float, float]],
    tokens: Words = None,
    *,
    columns: Words = None,
    maps: Sequence[Colormap | str | None] = (None,) * 3,
    bars: Sequence[str] = ("",) * 3,
) -> None:
    """Each matrix with its name above, a gap between them, columns counted from 0 or by name.

    A matrix with a name in ``bars`` has its color bar at its right.
    """
    rows = len(next(iter(parts.values())))
    ax, left, edge, ticks, labels = drawing.ax, 0.0, 0.0, [], []
    for (name, part), ends, cmap, label in zip(parts.items(), limits, maps, bars, strict=False):
        width = part.shape[1]
        extent = (left - 0.5, left + width - 0.5, rows - 0.5, -0.5)
        image = drawing.picture(part, ends, extent, cmap, "auto")
        drawing.write(left + width / 2 - 0.5, -0.75, name, va="bottom")
        shown = range(0, width, max(1, width // (16 if columns else 6)))
        ticks += [left + column for column in shown]
        labels += [columns[column] if columns else str(column) for column in shown]
        left = edge = left + width
        if label:
            place = (left - 0.5 + 0.05 * width, -0.5, 0.05 * width, rows)
            inner = ax.inset_axes(place, transform=ax.transData)
            alike = [p for p, of in zip(parts.values(), limits, strict=True) if of == ends]
            drawing.bar(image, label, np.stack(alike), cax=inner)
            inner.tick_params(labelsize="small")
            left, edge = left + 0.45 * width, left + 0.12 * width
        left += max(1.0, 0.06 * width)
    ax.set_xlim(-0.5, edge - 0.5)
    slanted = columns is not None and max(map(len, columns)) > 2
    turned = {"rotation": 45, "ha": "right"} if slanted else {"rotation": 0, "ha": "center"}
    ax.set_xticks(ticks, labels, rotation_mode="anchor", **turned)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_yticks(range(0, rows, 1 if tokens else max(1, rows // 10)), tokens)
    ax.spines[:].set_visible(False)


def norms(
    embedding: ArrayLike, encoding: ArrayLike, *, tokens: Words = None, **shown: Unpack[Shown]
) -> Axes:
    """Draws the length of each token's embedding beside that of its encoding, as bars.

    Args:
        embedding: [tokens], Euclidean norms without a unit (scaled by √d or not, as it is used).
        encoding: [tokens], likewise.
        tokens: The words.

    Example:
        >>> ax = norms([22.6, 22.1], [16.0, 16.0])
        >>> [round(float(bar.get_height()), 1) for bar in ax.patches]
        [22.6, 22.1, 16.0, 16.0]
    """
    one, other = numbers(embedding, "embedding", 1), numbers(encoding, "encoding", 1)
    ax, colors, drawing = opened(max(5.0, 0.8 * len(one)), 3.8, **shown)
    places = np.arange(len(one))
    ax.bar(places - 0.2, one, 0.38, color=colors.lines[0], label="embedding")
    hatched = {"hatch": "//", "edgecolor": colors.ground, "linewidth": 0.0}
    ax.bar(places + 0.2, other, 0.38, color=colors.lines[1], label="encoding", **hatched)
    ax.set_xticks(places, places.astype(str).tolist() if tokens is None else tokens)
    ax.set_ylim(0.0, 1.25 * max(one.max(), other.max()))
    drawing.legend(loc="upper right", ncols=2)
    return drawing.finished("token", "Euclidean norm")
