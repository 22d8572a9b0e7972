"""Masks: boolean, true where a query may see a key, or a number added to scores."""

import torch
from jaxtyping import Bool
from torch import Tensor


def not_later(
    q_len: int,
    k_len: int,
    *,
    first: int | Tensor | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "q_len k_len"]:
    """True where a key comes no later in the row than its query.

    Example:
        >>> not_later(1, 3).int(), not_later(1, 3, first=1).int()
        (tensor([[1, 1, 1]], dtype=torch.int32), tensor([[1, 1, 0]], dtype=torch.int32))
    """
    queries = torch.arange(q_len, device=device) + (k_len - q_len if first is None else first)
    return queries[:, None] >= torch.arange(k_len, device=device)


def within(
    window: int, q_len: int, k_len: int, *, device: torch.device | None = None
) -> Bool[Tensor, "q_len k_len"]:
    """True where a key is less than ``window`` tokens away; the queries are the last of the keys.

    Example:
        >>> within(2, 2, 3).int()
        tensor([[1, 1, 1],
                [0, 1, 1]], dtype=torch.int32)
    """
    queries = torch.arange(k_len - q_len, k_len, device=device)
    return (queries[:, None] - torch.arange(k_len, device=device)).abs() < window


def with_causal(
    mask: Tensor | None, is_causal: bool, q_len: int, k_len: int, device: torch.device
) -> Tensor | None:
    """``mask``, boolean or additive, which also hides later keys if ``is_causal``."""
    if not is_causal:
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


def added(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A bias and what there was before it: nothing, another bias, or a mask of either make.

    Example:
        >>> added(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
        tensor([1., -inf])
    """
    if mask is None:
        return bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask


def masked_softmax(
    scores: Tensor, mask: Tensor | None, sinks: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Masked scores and the weights of them, zero (and with zero gradient) in a dead row."""
    seen = None
    if mask is not None and mask.dtype != torch.bool:
        hidden = mask == -torch.inf
        scores, seen = scores + mask.masked_fill(hidden, 0.0), ~hidden
    elif mask is not None:
        seen = mask
    masked, nothing = scores, None
    if seen is not None:
        # A dead row would be NaN. The lowest number instead of −∞ everywhere would take weight from
        # keys whose additive mask is that number, as it is in many a model.
        masked = scores.masked_fill(~seen, -torch.inf)
        dead = (masked == -torch.inf).all(-1, keepdim=True)
        masked, nothing = masked.masked_fill(dead, 0.0), dead | ~seen
    if sinks is not None:
        column = sinks.to(masked.dtype).view(-1, 1, 1).expand(*masked.shape[:-1], 1)
        weights = torch.cat((masked, column), dim=-1).softmax(-1)[..., :-1]
    else:
        weights = masked.softmax(-1)
    if seen is None or nothing is None:
        return scores, weights
    return scores.masked_fill(~seen, -torch.inf), weights.masked_fill(nothing, 0.0)


def hides(distance: Tensor, *, is_causal: bool, window: int | None) -> Tensor | None:
    """Where order or a window hides a key from its query; ``None`` where nothing does."""
    hidden = distance < 0 if is_causal else None
    if window is not None:
        outside = (distance >= window) | (distance <= -window)  # |−2^63| is no int64
        hidden = outside if hidden is None else hidden | outside
    return hidden


def nothing_of(*content: Tensor) -> Tensor:
    """Zero, with gradients of zeros: the result where no query sees a key."""
    everywhere = torch.ones((), dtype=torch.bool, device=content[0].device)
    return sum(x.masked_fill(everywhere, 0.0).sum() for x in content)  # type: ignore[return-value]
