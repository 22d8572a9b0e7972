"""Attention with every number of it in memory: what the other backends mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from posenc.backends.base import Backend, Request
from posenc.backends.masks import joined, masked_softmax
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.bias import ScoreBias
from posenc.numerics.product import product


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


class Attended(NamedTuple):
    """What attention computes, step by step."""

    scores: Tensor  # query · key · scale, soft-capped if they are to be
    encoded: Tensor  # scores with positions in them, and −∞ where masked
    weights: Tensor  # the softmax of each row of these; a row that may see nothing is zero
    heads: Tensor  # weights · value, with what positions add to it


def attend_explicitly(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    encodings: Sequence[tuple[ScoreEncoding, Tensor]],
    mask: Tensor | None,
    *,
    scale: float,
    dropout_p: float = 0.0,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    features: Features | None = None,
) -> Attended:
    """softmax(what the encodings make of query keyᵀ · scale) value, in float32 at least."""
    group = query.shape[1] // key.shape[1]
    wide = working_dtype(query.dtype)
    keys, values = (t.to(wide).repeat_interleave(group, dim=1) for t in (key, value))
    scores = product(query.to(wide), keys.mT) * scale
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    changed = scores
    for encoding, table in encodings:
        check_table(encoding, table, *scores.shape[-2:])
        read = named(encoding, features)
        changed = encoding.encode(changed, table, q=query, k=key, scale=scale, **read)
    changed, weights = masked_softmax(changed, mask, sinks)
    weights = F.dropout(weights, dropout_p)
    heads = product(weights, values)
    for encoding, table in encodings:
        if encoding.changes_output:
            heads = encoding.encode_output(heads, weights, table)
    return Attended(scores, changed, weights, heads.to(value.dtype))


def check_table(encoding: ScoreEncoding, table: Tensor, q_len: int, k_len: int) -> None:
    """Refuse a table of other queries, keys or heads, of which one row would broadcast to all."""
    shape = tuple(table.shape)
    if isinstance(encoding, ScoreBias):
        fits = shape[-3:] == (encoding.heads, q_len, k_len)
    else:
        fits = shape[-2:] == (q_len, k_len) or 1 not in shape[-2:]
    if not fits:
        raise ValueError(
            f"The table of {type(encoding).__name__} has shape {shape}; there are {encoding.heads} "
            f"heads, {q_len} queries and {k_len} keys, cached keys included."
        )


@dataclass(frozen=True, eq=False)
class Explicit:
    """Scores formed, encoded one after the other, and weighed: queries × keys in memory."""

    why: str
    encodings: tuple[tuple[ScoreEncoding, Tensor], ...]
    mask: Tensor | None
    softcap: float | None = None
    sinks: Tensor | None = None
    features: Features | None = None
    name = "explicit"
    reads_padding = True

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        made = attend_explicitly(
            query, key, value, self.encodings, self.mask, scale=scale, dropout_p=dropout_p,
            softcap=self.softcap, sinks=self.sinks, features=self.features,
        )  # fmt: skip
        return made.heads

    def reading(self, features: Features) -> "Explicit":
        """The same with what encodings read in the hidden state."""
        return replace(self, features=features)


def reading(backend: Backend, features: Features) -> Backend:
    """The backend with what encodings read in the hidden state, if it hands that on."""
    hands_on = getattr(backend, "reading", None)
    return backend if not features or hands_on is None else hands_on(features)


def explicit(request: Request) -> Backend | str:
    """The backend; it serves everything."""
    spec = request.specification
    tables = tuple((encoding, request.bias_table(encoding)) for encoding in request.scores)
    mask = joined(spec.attn_mask, spec.visible())
    return Explicit(_why(request), tables, mask, spec.softcap, spec.sinks)


def _why(request: Request) -> str:
    if request.specification.softcap is not None and request.biases_alone:
        return "scores are capped one by one"
    if all(isinstance(encoding, ScoreBias) for encoding in request.scores):
        return "every score is formed and held"
    return "an encoding needs the scores themselves"
