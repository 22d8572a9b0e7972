"""Addition of a table to content: C, Triton, or else ``reference.py``."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.guards import captured, eager, kernels_reach, on_accelerator, recorded
from posenc.kernels.addition import cpu, reference
from posenc.kernels.out import check_memory, written
from posenc.kernels.philox import Dropping, check_probability, drawn


def scaled_sum(
    x: Float[Tensor, "*shape dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape dim"]:
    """``dropout(x · scale + table)`` by the fastest kernel there is, rounded once.

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
        TypeError: ``x`` is not floating, which would cut the sum.
        ValueError: The table is of more tokens than ``x``, positions come without a table,
            ``dropout`` is no probability; ``out`` has another shape or dtype than ``x``, or
            elements that share a place, or shares memory with the table or positions; or an
            operand has no memory.

    Example:
        >>> scaled_sum(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        tensor([3.5000, 3.2500])
    """
    records = recorded(x, table, out)
    if not dropout and not records and eager():  # the shortest path, for a step of decoding
        made = by_kernel(x, table, positions=positions, scale=scale, out=out)
        if made is not None:
            return made
    if dropout:
        check_probability(dropout)
    theirs = dropout == 1.0 or (dropout and captured(x))
    if theirs or not kernels_reach(x, table, positions, out):
        check_memory(x=x, table=table, positions=positions)
        reference.check_sum(x, table, positions)
        wide = reference.working_dtype(x, table)
        summed = reference.scaled_sum(x.to(wide), table, positions, scale=scale)
        made = (F.dropout(summed, dropout) if dropout else summed).to(x.dtype)
        return written(made, out, table=table, positions=positions)
    dropping = drawn(dropout)
    if records:
        if out is None and not (table is not None and table.requires_grad):
            return _Sum.apply(x, table, positions, scale, dropping)
    elif dropping is not None:
        made = by_kernel(x, table, positions=positions, scale=scale, dropping=dropping, out=out)
        if made is not None:
            return made
    return _by_reference(x, table, positions, scale, dropping, out)


def by_kernel(
    x: Tensor,
    table: Tensor | None,
    *,
    ids: Tensor | None = None,
    positions: Tensor | None = None,
    scale: float | None = None,
    dropping: Dropping | None = None,
    out: Tensor | None = None,
) -> Tensor | None:
    """The sum by C or Triton, or ``None`` where neither takes it; see ``cpu.scaled_sum``.

    Example:
        >>> made = by_kernel(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        >>> made is None or made.tolist() == [3.5, 3.25]
        True
    """
    run = cpu.scaled_sum
    if on_accelerator(x, table, ids, positions, out):
        from posenc.kernels.addition import triton

        run = triton.scaled_sum
    return run(
        x, table, ids=ids, positions=positions, scale=scale, dropping=dropping, out=out
    )  # fmt: skip


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
    if kernels_reach(gradient):
        if recorded(gradient):
            return _Gradient.apply(gradient, scale, dropping)
        made = _gradient_by_kernel(gradient, scale, dropping)
        if made is not None:
            return made
    return reference.gradient_of_x(gradient, scale, dropping)


def _gradient_by_kernel(
    gradient: Tensor, scale: float | None, dropping: Dropping | None
) -> Tensor | None:
    if not on_accelerator(gradient):
        return cpu.gradient_of_x(gradient, scale, dropping)
    from posenc.kernels.addition import triton

    return triton.gradient_of_x(gradient, scale, dropping)


class _Sum(torch.autograd.Function):
    """``scaled_sum`` for content that learns; neither it nor the mask is kept."""

    @staticmethod
    def forward(ctx, x, table, positions, scale, dropping):
        ctx.scale, ctx.dropping = scale, dropping
        made = by_kernel(x, table, positions=positions, scale=scale, dropping=dropping)
        if made is not None:
            return made
        return _by_reference(x, table, positions, scale, dropping, None)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient_of_x(gradient, ctx.scale, ctx.dropping), None, None, None, None


def _by_reference(
    x: Tensor,
    table: Tensor | None,
    positions: Tensor | None,
    scale: float | None,
    dropping: Dropping | None,
    out: Tensor | None,
) -> Tensor:
    check_memory(x=x, table=table, positions=positions)
    return reference.scaled_sum(x, table, positions, scale=scale, dropping=dropping, out=out)


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gradient, scale, dropping):
        ctx.scale, ctx.dropping = scale, dropping
        return gradient_of_x(gradient, scale, dropping)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient_of_x(gradient, ctx.scale, ctx.dropping), None, None
