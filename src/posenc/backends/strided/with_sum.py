"""Attention by its log-sum-exp: a sink joins it, and capped scores are formed a few at a time."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.differentiable import once_differentiable
from posenc.backends.strided.partial import Merged, Part, with_sinks
from posenc.encodings.base import working_dtype


def attend_with_sum(
    part: Part,
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    sinks: Float[Tensor, "heads"] | None,
    *,
    scale: float,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """What ``part`` gives, with a share of each row's weight for its sink.

    With L = log Σ exp(scores) of a row and a sink s, the row is out · exp(L − L') where
    L' = log(exp L + exp s). Backward, weights are formed anew from L'; the sink's own is
    exp(s − L'), and as it gives no value its gradient is −exp(s − L') · rowsum(dO ∘ O).

    Reference:
        Agarwal et al. 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2.2
        (arXiv:2508.10925).
    """
    return _Attention.apply(part, scale, q, k, v, sinks, *part.tensors)  # type: ignore[return-value]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        part: Part,
        scale: float,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sinks: Tensor | None,
        *tensors: Tensor,
    ) -> Tensor:
        # What learns is told by δ, a difference that a result rounded to 16 bits would spoil.
        learns = any(ctx.needs_input_grad[5:])
        content = [t.to(working_dtype(t.dtype)) if learns else t for t in (q, k, v)]
        made = part(*content, scale=scale)
        if sinks is not None:
            made = with_sinks(made, sinks)
        out = made.out.to(content[0].dtype)
        # What it learns is saved too, so that autograd sees when somebody changes it in between.
        ctx.save_for_backward(q, k, v, out, made.lse, sinks, *tensors)
        ctx.part, ctx.scale = part, scale
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, out, lse, sinks, *_ = ctx.saved_tensors
        content = [t.to(out.dtype) for t in (q, k, v)]
        merged = merged_results(out, lse, grad.to(out.dtype))
        dq, dk, dv, *learned = ctx.part.gradients(*content, merged, scale=ctx.scale)
        to_sinks = None if sinks is None else gradient_of_sinks(sinks, merged)
        return None, None, dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), to_sinks, *learned


def merged_results(out: Tensor, lse: Tensor, grad: Tensor) -> Merged:
    """What the parts of a result need of it in their backward pass."""
    grad = grad.contiguous()
    delta = (grad.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
    return Merged(out, lse.masked_fill(lse == -torch.inf, 0.0), grad, delta)


def gradient_of_sinks(sinks: Tensor, merged: Merged) -> Tensor:
    """A sink has weight exp(sink − L) and no value, so its score gets −weight · δ."""
    weight = (sinks.to(merged.lse.dtype).view(1, -1, 1) - merged.lse).exp()
    return (-weight * merged.delta).sum((0, 2)).to(sinks.dtype)
