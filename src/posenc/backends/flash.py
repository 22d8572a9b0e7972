"""One block of attention with its log-sum-exp: torch's operation on the CPU, products elsewhere."""

import torch
from torch import Tensor

from posenc.encodings.base import working_dtype

# Torch has no public function that returns the log-sum-exp on the CPU, or takes one backward.
_FORWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
_BACKWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def serves(q: Tensor, v: Tensor) -> bool:
    """Whether torch's own operation takes these; it wants values as wide as queries."""
    there = _FORWARD is not None and _BACKWARD is not None
    return there and q.device.type == "cpu" and q.shape[-1] == v.shape[-1]


def flash(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dead: Tensor, *, scale: float
) -> tuple[Tensor, Tensor]:
    """The result in float32 at least, and the log-sum-exp: 0 and −∞ where a row is ``dead``."""
    bias = bias.expand(1, q.shape[1], -1, -1)
    if serves(q, v) and _FORWARD is not None:
        out, lse = _FORWARD(q, k, v, 0.0, False, attn_mask=bias, scale=scale)
        return out.to(lse.dtype), lse.masked_fill(dead, -torch.inf)
    wide, group = working_dtype(q.dtype), q.shape[1] // k.shape[1]
    keys, values = (t.to(wide).repeat_interleave(group, dim=1) for t in (k, v))
    scores = torch.matmul(q.to(wide), keys.mT).mul_(scale).add_(bias)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(dead, 0.0).unsqueeze(-1)).exp()
    return weights @ values, lse.masked_fill(dead, -torch.inf)


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
    return _BACKWARD(grad, q, k, v, out, lse.contiguous(), 0.0, False, attn_mask=bias, scale=scale)
