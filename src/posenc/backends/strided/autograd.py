"""Attention to parts with a backward pass of its own, which forms weights anew."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.results import (
    Part,
    gradient_of_sinks,
    merged_results,
    with_sinks,
)
from posenc.encodings.base import working_dtype
from posenc.numerics.product import without_autocast

AGAIN = (
    "Gradients of attention in blocks, or in a ring of devices, cannot be differentiated again; "
    'call posenc.attention with backend="explicit" for gradients of gradients.'
)


def attend_to_part(
    part: Part,
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    sinks: Float[Tensor, "heads"] | None,
    *,
    scale: float,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """What ``part`` gives, with a share of each row's weight for its sink; gradients reach all."""
    return _Attention.apply(part, scale, q, k, v, sinks, *part.tensors)  # type: ignore[return-value]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass whose gradients raise where they are differentiated again.

    torch's own decorator takes them for constants where what comes to ``backward`` has no gradient
    of its own, as after a plain sum; then a penalty on gradients would be none. And what nothing
    leads to counts as constant to ``torch.autograd.functional.hessian``.
    """

    @wraps(backward)
    def once(ctx: Any, *gradients: Tensor | None) -> Any:
        given = next(x for x in gradients if x is not None)
        with torch.no_grad(), without_autocast(given):
            made = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return made
        # All that they depend on, so that whoever asks for its gradient comes this way too.
        known = *ctx.saved_tensors, *gradients
        several = made if isinstance(made, tuple) else (made,)
        tensors = [x.detach().requires_grad_() for x in several if x is not None]
        told = iter(_Once.apply(len(tensors), *tensors, *known))  # type: ignore[arg-type]
        every = tuple(None if x is None else next(told) for x in several)
        return every if isinstance(made, tuple) else every[0]

    return once


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
        # What learns depends on δ, a difference that a result rounded to 16 bits would spoil.
        learns = any(ctx.needs_input_grad[5:])
        wide = working_dtype(q.dtype) if learns else q.dtype
        with without_autocast(q):
            made = part(q.to(wide), k, v, scale=scale)
        if sinks is not None:
            made = with_sinks(made, sinks)
        out = made.out.to(wide)
        # Biases are saved too, so that autograd sees when somebody changes one in between.
        ctx.save_for_backward(q, k, v, out, made.lse, sinks, *tensors)
        ctx.part, ctx.scale = part, scale
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, out, lse, sinks, *_ = ctx.saved_tensors
        merged = merged_results(out, lse, grad.to(out.dtype), alone=sinks is None)
        dq, dk, dv, *learned = ctx.part.gradients(q.to(out.dtype), k, v, merged, scale=ctx.scale)
        to_sinks = None if sinks is None else gradient_of_sinks(sinks, merged)
        return None, None, dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), to_sinks, *learned


class _Once(torch.autograd.Function):
    """Gradients as they are, which raise where somebody asks for theirs."""

    @staticmethod
    def forward(ctx: Any, count: int, *made: Tensor | None) -> Any:
        """The first ``count``; the others are what these were made of."""
        return tuple(x.view_as(x) for x in made[:count] if x is not None)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(AGAIN)
