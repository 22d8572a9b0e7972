"""What score encodings read in the hidden state, on its way to them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from torch import Tensor

from posenc.encodings.base import ScoreEncoding


class Read(NamedTuple):
    """What one encoding read.

    Attributes:
        queries: ``[batch, q_len, width]``, or nothing.
        keys: ``[batch, k_len, width]``, or nothing.
    """

    queries: Tensor | None
    keys: Tensor | None


Features = Mapping[ScoreEncoding, Read]
"""What each encoding that reads the hidden state read there."""


def readers(encodings: Sequence[ScoreEncoding]) -> tuple[ScoreEncoding, ...]:
    """Those that read the hidden state, each once."""
    found: dict[ScoreEncoding, None] = {}
    for encoding in encodings:
        if encoding.reads_hidden:
            found[encoding] = None
    return tuple(found)


def read(
    encodings: Sequence[ScoreEncoding], q_hidden: Tensor | None, k_hidden: Tensor | None
) -> Features:
    """What these read in the hidden states of queries and of keys.

    Raises:
        ValueError: A hidden state was not given.
    """
    for name, hidden in (("q_hidden", q_hidden), ("k_hidden", k_hidden)):
        if hidden is None and encodings:
            raise ValueError(
                f"{type(encodings[0]).__name__} reads the hidden state from which queries and keys "
                f"are projected; {name} was not given. Pass q_hidden=[batch, q_len, dim] and "
                f"k_hidden=[batch, k_len, dim]."
            )
    q_hidden, k_hidden = cast(Tensor, q_hidden), cast(Tensor, k_hidden)
    return {each: Read(each.query_features(q_hidden), each.key_features(k_hidden))
            for each in encodings}  # fmt: skip


def named(encoding: ScoreEncoding, features: Features | None) -> dict[str, Tensor | None]:
    """What ``encoding.encode`` takes by name of what it read.

    Raises:
        ValueError: It reads the hidden state, and nothing was read for it.
    """
    if not encoding.reads_hidden:
        return {}
    if features is None or encoding not in features:
        raise ValueError(
            f"{type(encoding).__name__} reads the hidden state, of which nothing was given here. "
            f"Call posenc.attention with q_hidden and k_hidden, or an encoder."
        )
    return {"q_features": features[encoding].queries, "k_features": features[encoding].keys}
