"""Which token may look at which: a boolean, true where it may, or a number added to scores."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.encodings.places import ScoreBias
from posenc.transformer.tables import AttentionTables


def allowed(
    q_len: int,
    k_len: int,
    *,
    causal: bool = False,
    padding_mask: Bool[Tensor, "batch k_len"] | None = None,
    document_ids: Int64[Tensor, "batch k_len"] | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "#batch #heads #q_len k_len"] | None:
    """The pairs of query and key that may meet, or ``None`` where all may.

    Queries are the last ``q_len`` of the ``k_len`` tokens, as behind a cache.

    Args:
        q_len: Number of queries.
        k_len: Number of keys.
        causal: A token sees itself and the tokens before it in its row.
        padding_mask: True where a key is a real token; padding is seen by nobody.
        document_ids: A token sees the tokens of its own document.
        device: Where the mask is made.

    Example:
        >>> allowed(2, 3, causal=True)[0, 0].int()
        tensor([[1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
    """
    mask = None
    if causal:
        mask = not_later(q_len, k_len, device=device)[None, None]
    if padding_mask is not None:
        mask = _both(mask, padding_mask[:, None, None, :])
    if document_ids is not None:
        queries = document_ids[:, k_len - q_len :]
        mask = _both(mask, (queries[:, :, None] == document_ids[:, None, :])[:, None])
    return mask


def not_later(
    q_len: int, k_len: int, *, device: torch.device | None = None
) -> Bool[Tensor, "q_len k_len"]:
    """True where a key is not later than the query; the queries are the last of the keys."""
    queries = torch.arange(k_len - q_len, k_len, device=device)
    return queries[:, None] >= torch.arange(k_len, device=device)


def with_causal(
    mask: Tensor | None, causal: bool, q_len: int, k_len: int, device: torch.device
) -> Tensor | None:
    """``mask``, boolean or additive, which also hides later keys if ``causal``."""
    if not causal:
        return mask
    order = not_later(q_len, k_len, device=device)
    if mask is None:
        return order
    return mask & order if mask.dtype == torch.bool else mask.masked_fill(~order, -torch.inf)


def fold_biases(
    tables: AttentionTables, mask: Tensor | None, causal: bool, heads: int
) -> tuple[AttentionTables, Tensor | None, bool]:
    """Score encodings that only add a number, summed into the mask.

    An encoder does this once for all of its layers. Where one of the encodings depends on content,
    or where there are none, everything stays as it is.

    Raises:
        ValueError: A bias was built for another number of heads.
    """
    only_added = all(isinstance(encoding, ScoreBias) for encoding, _ in tables.scores)
    if not tables.scores or not only_added:
        return tables, mask, causal
    for encoding, table in tables.scores:
        if table.shape[-3] != heads:
            raise ValueError(
                f"{type(encoding).__name__} was built for {table.shape[-3]} heads; attention has "
                f"{heads}. Build it with heads={heads}."
            )
    bias = sum(table for _, table in tables.scores)
    assert isinstance(bias, Tensor)
    mask = with_causal(mask, causal, bias.shape[-2], bias.shape[-1], bias.device)
    if mask is not None:
        bias = torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask
    return AttentionTables(tables.queries_keys), bias, False


def masked_softmax(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Masked scores and the weights of them, zero (and with zero gradient) in a dead row."""
    if mask is None:
        return scores, scores.softmax(-1)
    if mask.dtype != torch.bool:
        hidden = mask == -torch.inf
        scores, mask = scores + mask.masked_fill(hidden, 0.0), ~hidden
    # The lowest number instead of −∞: exp gives 0 beside any real score, and no NaN in a dead row.
    masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.masked_fill(~mask, -torch.inf), masked.softmax(-1).masked_fill(~mask, 0.0)


def _both(mask: Tensor | None, other: Tensor) -> Tensor:
    return other if mask is None else mask & other
