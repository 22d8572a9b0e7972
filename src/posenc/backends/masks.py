"""Which token may look at which: a boolean, true where it may, or a number added to scores."""

import torch
from jaxtyping import Bool
from torch import Tensor


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
    return joined(mask, not_later(q_len, k_len, device=device))


def joined(mask: Tensor | None, visible: Tensor | None) -> Tensor | None:
    """``mask``, boolean or additive, less what is not ``visible``.

    Example:
        >>> joined(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
        tensor([1., -inf])
    """
    if mask is None or visible is None:
        return visible if mask is None else mask
    return mask & visible if mask.dtype == torch.bool else torch.where(visible, mask, -torch.inf)


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
