"""The same where a bias learns one number for all far keys, as T5 does in its last bucket.

Torch's fused operation gives the gradients of queries, keys and values as for a frozen bias.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.blocks import blocks
from posenc.backends.strided.differentiable import once_differentiable
from posenc.backends.strided.far_keys import add_to_bias
from posenc.backends.strided.partial import Merged, in_one_segment
from posenc.backends.strided.toeplitz import Toeplitz


def attend_and_share(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    bias: Toeplitz,
    offset: int,
    *,
    scale: float,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """``attend_and_learn`` where ``bias.shared_from`` says which distances share a number."""
    return _Attention.apply(  # type: ignore[return-value]
        q, k, v, bias.values, bias.highest, bias.shared_from, offset, scale
    )


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        values: Tensor,
        highest: int,
        shared_from: int,
        offset: int,
        scale: float,
    ) -> Tensor:
        part = in_one_segment(q, k, Toeplitz(values.detach(), highest, shared_from), offset)
        made = part(*(t.to(values.dtype) for t in (q, k, v)), scale=scale)
        ctx.save_for_backward(q, k, v, values, *made)
        ctx.constants = highest, shared_from, offset, scale
        return made.out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *content, values, out, lse = ctx.saved_tensors
        q, k, v = (t.to(out.dtype) for t in content)
        highest, shared_from, offset, scale = ctx.constants
        bias = Toeplitz(values.detach(), highest, shared_from)
        lse = lse.masked_fill(lse == -torch.inf, 0.0)
        merged = Merged(out, lse, grad.to(out.dtype), (grad * out).sum(-1))
        dq, dk, dv, _ = in_one_segment(q, k, bias, offset).gradients(q, k, v, merged, scale=scale)
        dvalues = torch.zeros_like(values)
        for block in blocks(q.shape, k.shape, bias, offset):
            add_to_bias(block, dvalues, (q, k, v), bias, merged, offset, scale)
        made = (new.to(t.dtype) for new, t in zip((dq, dk, dv), content, strict=True))
        return *made, dvalues, None, None, None, None
