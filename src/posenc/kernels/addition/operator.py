"""Addition of a table to content: C, Triton, or else ``addition_reference.py``."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc._guards import dense, eager
from posenc.kernels.accelerator import served
from posenc.kernels.addition import cpu as native
from posenc.kernels.addition import reference as reference
from posenc.kernels.philox import Dropping, drawn


def scaled_sum(
    x: Float[Tensor, "*shape dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape dim"]:
    """``dropout(x · scale + table)`` by the fastest way, rounded once to the dtype of ``x``.

    In eager mode the dropout is that of ``posenc.kernels.philox``, with a key drawn from torch's
    generator of the CPU; nothing is kept of it for the gradient but the key, and every device
    drops the same elements. Compiled, exported, transformed, captured into a graph, and on devices
    without kernels it is torch's own.

    Args:
        x: Content.
        table: What is added, if anything is; it broadcasts against ``x``. With ``positions``,
            ``[rows, dim]``.
        positions: Which row of the table each token takes.
        scale: What ``x`` is multiplied with first.
        dropout: Probability of dropping an element of the sum.
        out: Where to write the result; ``out=x`` adds in place.

    Raises:
        IndexError: A position is not a row of the table.
        ValueError: ``out`` has another shape or dtype than ``x``.

    Example:
        >>> scaled_sum(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        tensor([3.5000, 3.2500])
    """
    if not dropout and not recorded(x, table, out):  # the shortest way, for a step of decoding
        made = native.scaled_sum(x, table, positions=positions, scale=scale, out=out)
        if made is not None:
            return made
    if not ours(x, table, positions, out) or dropout == 1.0 or (dropout and captured(x)):
        wide = reference.working_dtype(x, table)
        summed = reference.scaled_sum(x.to(wide), table, positions, scale=scale)
        return reference.written(F.dropout(summed, dropout, dropout > 0).to(x.dtype), out)
    dropping = drawn(dropout)
    if recorded(x, table, out):
        if out is None and not (table is not None and table.requires_grad):
            return _Sum.apply(x, table, positions, scale, dropping)
    else:
        made = fused(x, table, positions=positions, scale=scale, dropping=dropping, out=out)
        if made is not None:
            return made
    return reference.scaled_sum(x, table, positions, scale=scale, dropping=dropping, out=out)


def fused(
    x: Tensor,
    table: Tensor | None,
    *,
    ids: Tensor | None = None,
    positions: Tensor | None = None,
    scale: float | None = None,
    dropping: Dropping | None = None,
    out: Tensor | None = None,
) -> Tensor | None:
    """The sum by C or Triton, or ``None`` where neither takes it; see ``native.scaled_sum``.

    Example:
        >>> made = fused(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        >>> made is None or made.tolist() == [3.5, 3.25]
        True
    """
    run = native.scaled_sum
    if served(x, table, ids, positions, out):
        from posenc.kernels.addition import triton as accelerated

        run = accelerated.scaled_sum
    given = {"ids": ids, "positions": positions, "scale": scale, "dropping": dropping, "out": out}
    return run(x, table, **given)


def gradient_of_x(
    gradient: Float[Tensor, "*shape"], scale: float | None, dropping: Dropping | None
) -> Float[Tensor, "*shape"]:
    """The gradient of ``scaled_sum`` by ``x``: linear, so it is its own gradient.

    Example:
        >>> gradient_of_x(torch.ones(2), 3.0, None)
        tensor([3., 3.])
    """
    if scale is None and dropping is None:
        return gradient
    if eager():
        if not recorded(gradient):
            made = _fused_gradient(gradient, scale, dropping)
            if made is not None:
                return made
        elif dense(gradient) or served(gradient):
            return _Gradient.apply(gradient, scale, dropping)
    return reference.gradient_of_x(gradient, scale, dropping)


def _fused_gradient(
    gradient: Tensor, scale: float | None, dropping: Dropping | None
) -> Tensor | None:
    if not served(gradient):
        return native.gradient_of_x(gradient, scale, dropping)
    from posenc.kernels.addition import triton as accelerated

    return accelerated.gradient_of_x(gradient, scale, dropping)


class _Sum(torch.autograd.Function):
    """``scaled_sum`` for content that learns; neither it nor the mask is kept."""

    @staticmethod
    def forward(ctx, x, table, positions, scale, dropping):
        ctx.scale, ctx.dropping = scale, dropping
        made = fused(x, table, positions=positions, scale=scale, dropping=dropping)
        if made is not None:
            return made
        return reference.scaled_sum(x, table, positions, scale=scale, dropping=dropping)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient_of_x(gradient, ctx.scale, ctx.dropping), None, None, None, None


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gradient, scale, dropping):
        ctx.scale, ctx.dropping = scale, dropping
        return gradient_of_x(gradient, scale, dropping)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient_of_x(gradient, ctx.scale, ctx.dropping), None, None


def ours(first: Tensor, *others: Tensor | None) -> bool:
    """Whether all are numbers where kernels reach them, and nobody watches but autograd."""
    if not eager():
        return False
    return dense(first, *[x for x in others if x is not None]) or served(first, *others)


def captured(x: Tensor) -> bool:
    """Whether what runs is recorded to run again, when a key would be the same each time.

    Example:
        >>> captured(torch.ones(2))
        False
    """
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def recorded(*tensors: Tensor | None) -> bool:
    """Whether autograd records what is done with these."""
    if not torch.is_grad_enabled():
        return False
    return any(x is not None and x.requires_grad for x in tensors)
