"""A backward pass that cannot be differentiated again, and says so."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from posenc.numerics.product import without_autocast


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass whose gradients cannot be differentiated again: that raises.

    torch's own decorator lets them pass for constants where what comes to ``backward`` has no
    gradient of its own, as after a plain sum; then a penalty on gradients would be none. And what
    nothing leads to counts as constant to ``torch.autograd.functional.hessian``.

    Example:
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, gradient):
        ...         return 2 * ctx.saved_tensors[0] * gradient
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (once,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
        >>> once.item()
        6.0
        >>> once.backward()
        Traceback (most recent call last):
        ...
        RuntimeError: Gradients of attention in blocks, or in a ring of devices, were to be \
differentiated again, and the backward pass that made them was not recorded. Call \
posenc.attention with backend="explicit" where gradients of gradients are needed.
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
        tensors = [_wanted(x) for x in several if x is not None]
        told = iter(_Once.apply(len(tensors), *tensors, *known))  # type: ignore[arg-type]
        every = tuple(None if x is None else next(told) for x in several)
        return every if isinstance(made, tuple) else every[0]

    return once


def _wanted(x: Tensor) -> Tensor:
    """The same numbers, of which autograd will record what is done with them."""
    return x.detach().requires_grad_()


class _Once(torch.autograd.Function):
    """Gradients as they are, which raise where somebody asks for theirs."""

    @staticmethod
    def forward(ctx: Any, count: int, *made: Tensor | None) -> Any:
        """The first ``count``; the others are what these were made of."""
        return tuple(x.view_as(x) for x in made[:count] if x is not None)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "Gradients of attention in blocks, or in a ring of devices, were to be differentiated "
            "again, and the backward pass that made them was not recorded. Call posenc.attention "
            'with backend="explicit" where gradients of gradients are needed.'
        )
