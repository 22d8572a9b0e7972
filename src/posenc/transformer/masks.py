"""Which token may look at which: boolean, true where it may."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


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


def _both(mask: Tensor | None, other: Tensor) -> Tensor:
    return other if mask is None else mask & other
