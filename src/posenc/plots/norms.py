"""How long embeddings and encodings are, token by token."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from posenc.plots.style import Theme, dress, key, look, new_axes, numbers


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
        title: A line above the picture.
        ax: Where to draw; a new figure by default.
        theme: ``light`` or ``dark``.

    Raises:
        ValueError: The numbers of tokens differ.

    Example:
        >>> ax = norms([22.6, 22.1], [16.0, 16.0])
        >>> [round(float(bar.get_height()), 1) for bar in ax.patches]
        [22.6, 22.1, 16.0, 16.0]
    """
    one, other = numbers(embedding, "embedding", 1), numbers(encoding, "encoding", 1)
    if len(one) != len(other) or (tokens is not None and len(tokens) != len(one)):
        raise ValueError(
            f"There are {len(one)} embeddings, {len(other)} encodings and "
            f"{'no' if tokens is None else len(tokens)} tokens; give one each."
        )
    colors = look(theme)
    ax = new_axes(max(5.0, 0.8 * len(one)), 3.8, colors) if ax is None else ax
    places = np.arange(len(one))
    ax.bar(places - 0.2, one, 0.38, color=colors.lines[0], label="embedding")
    ax.bar(
        places + 0.2, other, 0.38, color=colors.lines[1], label="encoding", hatch="//",
        edgecolor=colors.ground, linewidth=0.0,
    )  # fmt: skip
    ax.set_xticks(places, list(tokens) if tokens is not None else [str(p) for p in places])
    ax.set_xlabel("token")
    ax.set_ylabel("Euclidean norm")
    ax.set_ylim(0.0, 1.25 * max(one.max(), other.max()))
    if title:
        ax.set_title(title, fontsize="medium", wrap=True)
    key(ax, colors, loc="upper right", ncols=2)
    dress(ax, colors)
    return ax
