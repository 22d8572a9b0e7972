"""One block of attention with its log-sum-exp: torch's operation on the CPU, products elsewhere."""

import torch
from torch import Tensor

from posenc.encodings.base import working_dtype
from posenc.numerics.product import product

# Torch has no public function that returns the log-sum-exp on the CPU, or takes one backward.
_FORWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
_BACKWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def serves(q: Tensor, v: Tensor, softcap: float | None = None) -> bool:
    """Whether torch's own operation takes these; it wants values as wide as queries, and no cap."""
    there = _FORWARD is not None and _BACKWARD is not None and softcap is None
    return there and q.device.type == "cpu" and q.shape[-1] == v.shape[-1]


def flash(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    dead: Tensor,
    *,
    scale: float,
    softcap: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The result in float32 at least, and the log-sum-exp: 0 and −∞ where a row is ``dead``."""
    bias = None if bias is None else bias.expand(1, q.shape[1], -1, -1)
    if serves(q, v, softcap) and _FORWARD is not None:
        q, k, v = (_in_rows(t) for t in (q, k, v))
        out, lse = _FORWARD(q, k, v, 0.0, False, attn_mask=bias, scale=scale)
        return out.to(lse.dtype), lse.masked_fill(dead, -torch.inf)
    wide, group = working_dtype(q.dtype), q.shape[1] // k.shape[1]
    keys, values = k.to(wide), v.to(wide)
    # Query heads of one key head lie below each other, so that keys are not repeated for them.
    queries = q.to(wide).mul(scale).unflatten(1, (-1, group)).flatten(2, 3)
    scores = product(queries, keys.mT).unflatten(2, (group, -1)).flatten(1, 2)
    scores = capped(scores, softcap)
    scores = scores if bias is None else scores.add_(bias)
    # −∞ less itself would be no number; a dead row stays −∞ and gives zeros.
    top = scores.amax(-1, keepdim=True).masked_fill_(dead.unsqueeze(-1), 0.0)
    weights = scores.sub_(top).exp_()
    total = weights.sum(-1, keepdim=True).masked_fill_(dead.unsqueeze(-1), 1.0)
    out = product(weights.unflatten(1, (-1, group)).flatten(2, 3), values)
    out = out.unflatten(2, (group, -1)).flatten(1, 2).div_(total)
    return out, (top + total.log()).squeeze(-1).masked_fill(dead, -torch.inf)


def capped(scores: Tensor, softcap: float | None) -> Tensor:
    """c · tanh(scores / c), in place."""
    return scores if softcap is None else scores.div_(softcap).tanh_().mul_(softcap)


def flash_gradients(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    bias: Tensor,
    *,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v; ``out`` and ``lse`` are those of all keys together."""
    assert _BACKWARD is not None
    bias = bias.expand(1, q.shape[1], -1, -1)
    grad, q, k, v, out = (_in_rows(t) for t in (grad, q, k, v, out))
    return _BACKWARD(grad, q, k, v, out, lse.contiguous(), 0.0, False, attn_mask=bias, scale=scale)


def _in_rows(x: Tensor) -> Tensor:
    """With channels side by side in memory: torch's operation takes it for granted, unasked."""
    return x if x.stride(-1) == 1 else x.contiguous()
