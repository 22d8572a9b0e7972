"""How long embeddings and encodings are, token by token."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, finished, key, numbers, opened


def norms(
    embedding: ArrayLike,
    encoding: ArrayLike,
    *,
    tokens: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
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
    ax, colors = opened(ax, theme, max(5.0, 0.8 * len(one)), 3.8)
    places = np.arange(len(one))
    ax.bar(places - 0.2, one, 0.38, color=colors.lines[0], label="embedding")
    ax.bar(
        places + 0.2, other, 0.38, color=colors.lines[1], label="encoding", hatch="//",
        edgecolor=colors.ground, linewidth=0.0,
    )  # fmt: skip
    ax.set_xticks(places, places.astype(str).tolist() if tokens is None else tokens)
    ax.set_ylim(0.0, 1.25 * max(one.max(), other.max()))
    key(ax, loc="upper right", ncols=2)
    return finished(ax, colors, title, "token", "Euclidean norm")
