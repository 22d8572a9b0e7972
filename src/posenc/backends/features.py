"""What score encodings read in the hidden state, on its way to them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from posenc.encodings.base import ScoreEncoding


class Read(NamedTuple):
    """What one encoding read."""

    queries: Tensor | None  # [batch, q_len, width], or nothing
    keys: Tensor | None  # [batch, k_len, width], or nothing


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
    """What these read in the hidden states of queries and of keys."""
    if not encodings:
        return {}
    if q_hidden is None or k_hidden is None:
        missing = "q_hidden" if q_hidden is None else "k_hidden"
        name = type(encodings[0]).__name__
        raise ValueError(f"{name} reads the hidden state, and {missing} was not given.")
    return {
        each: Read(each.query_features(q_hidden), each.key_features(k_hidden)) for each in encodings
    }


def named(encoding: ScoreEncoding, features: Features | None) -> dict[str, Tensor | None]:
    """What ``encoding.encode`` takes by name of what it read."""
    if not encoding.reads_hidden:
        return {}
    if features is None or encoding not in features:
        name = type(encoding).__name__
        raise ValueError(f"{name} reads the hidden state, of which nothing was given here.")
    return {"q_features": features[encoding].queries, "k_features": features[encoding].keys}
