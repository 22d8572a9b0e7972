"""Attention with every number of it in memory: what the other ways mean."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from posenc.backends.masks import masked_softmax
from posenc.encodings.base import ScoreEncoding, working_dtype


class Attended(NamedTuple):
    """What attention computes, step by step.

    Attributes:
        scores: queries · keys · scale.
        encoded: Scores with positions in them, and −∞ where masked.
        weights: The softmax of each row of these; a row that may see nothing is zero.
        heads: weights · values.
    """

    scores: Tensor
    encoded: Tensor
    weights: Tensor
    heads: Tensor


def attend_explicitly(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encodings: Sequence[tuple[ScoreEncoding, Tensor]],
    mask: Tensor | None,
    *,
    scale: float,
    dropout: float = 0.0,
) -> Attended:
    """softmax(what the encodings make of q kᵀ · scale) v, in float32 at least.

    Args:
        q: ``[batch, heads, q_len, head_dim]``.
        k: ``[batch, kv_heads, k_len, head_dim]``.
        v: ``[batch, kv_heads, k_len, value_dim]``.
        encodings: Encodings of scores, in order, each with its table.
        mask: Boolean, true where a query may see a key, or additive.
        scale: What products are multiplied with.
        dropout: Probability of dropping a weight.
    """
    group = q.shape[1] // k.shape[1]
    wide = working_dtype(q.dtype)
    all_k, all_v = (t.to(wide).repeat_interleave(group, dim=1) for t in (k, v))
    scores = q.to(wide) @ all_k.mT * scale
    changed = scores
    for encoding, table in encodings:
        changed = encoding.encode(changed, table, q=q, k=k)
    changed, weights = masked_softmax(changed, mask)
    heads = F.dropout(weights, dropout) @ all_v
    return Attended(scores, changed, weights, heads.to(v.dtype))


def grouped(q: Tensor, k: Tensor) -> bool:
    """Whether several query heads share a key head."""
    # In a graph the comparison is a symbol; only a branch makes a plain bool of it.
    return True if q.shape[1] != k.shape[1] else False  # noqa: SIM210
