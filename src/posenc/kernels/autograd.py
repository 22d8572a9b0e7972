"""What autograd is told of kernels that write behind its back, and of what it cannot see."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version


def _each_by_itself(written: tuple[Tensor, ...]) -> None:
    for x in written:
        increment_version(x)


def _takes_several() -> bool:
    """Torch before 2.6 takes one tensor."""
    try:
        increment_version((torch.empty(0, device="cpu"),))
    except TypeError:
        return False
    return True


note_writes = increment_version if _takes_several() else _each_by_itself
"""Lets autograd notice that tensors were written: what it saved of them is no longer right."""


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass whose gradients cannot be differentiated again: that raises.

    torch's own decorator lets them pass for constants where what comes to ``backward`` has no
    gradient of its own, as after a plain sum; then a penalty on gradients would be none.

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
        with torch.no_grad():
            made = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return made
        if isinstance(made, Tensor):
            return _Once.apply(_wanted(made))[0]  # type: ignore[index]
        tensors = [_wanted(x) for x in made if x is not None]
        known = iter(_Once.apply(*tensors) if tensors else ())  # type: ignore[arg-type]
        return tuple(None if x is None else next(known) for x in made)

    return once


def _wanted(x: Tensor) -> Tensor:
    """The same numbers, of which autograd will record what is done with them."""
    return x.detach().requires_grad_()


class _Once(torch.autograd.Function):
    """Gradients as they are, which raise where somebody asks for theirs."""

    @staticmethod
    def forward(ctx: Any, *made: Tensor) -> Any:
        return tuple(x.view_as(x) for x in made)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "Gradients of attention in blocks, or in a ring of devices, were to be differentiated "
            "again, and the backward pass that made them was not recorded. Call posenc.attention "
            'with backend="explicit" where gradients of gradients are needed.'
        )
