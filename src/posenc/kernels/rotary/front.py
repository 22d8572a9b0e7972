"""Rotation of queries and keys: the operator, or the formula where operators do not serve."""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc.guards import plain, recorded
from posenc.kernels.operators import (
    NATIVE,
    TABLES,
    TRITON,
    check_devices,
    refusal,
    register,
    serve,
    written,
)
from posenc.kernels.rotary import reference
from posenc.kernels.rotary.layout import RotaryLayout as RotaryLayout
from posenc.numerics.pairing import Pairing, Rotated

FRESH, IN_PLACE, OUT = "", "_", "_out"


def rotate_heads(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """Heads rotated, queries and keys in one call.

    Args:
        contents: One or two of ``[*batch, heads, seq, head_dim]``, or ``[*batch, seq, heads,
            head_dim]``.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes; what is no row makes NaN on a GPU.
        layout: How heads lie and which channels are rotated.
        outs: Where to write; ``contents`` itself rotates in place.
    """
    q, k = contents[0], contents[-1]
    fits = q.ndim <= 4 and q.dtype is k.dtype and table.dtype is TABLES.get(q.dtype)
    ours = NATIVE if q.is_cpu else TRITON and q.is_cuda  # as ``serve`` asks, in a frame less
    if not (fits and ours and plain(q, k, table)):
        return by_formula(contents, table, positions, layout, outs)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or table.requires_grad):
        if outs is not None or table.requires_grad:
            return by_formula(contents, table, positions, layout, outs)
        if q is k:  # which a compiler takes once
            return tuple([_Rotated.apply(table, positions, layout.bits, x)[0] for x in contents])
        return _Rotated.apply(table, positions, layout.bits, *contents)
    form = FRESH if outs is None else IN_PLACE if outs is contents else OUT
    into = () if outs is None or outs is contents else outs
    rows = (table,) if positions is None else (table, positions)
    try:
        made = OPERATORS[len(contents), positions is not None, form](
            *contents,
            *rows,
            *into,
            layout.bits,  # type: ignore[misc]
        )
    except RuntimeError as error:
        raise refusal(error) from None
    return outs or (made if len(contents) == 2 else (made,))


class _Rotated(torch.autograd.Function):
    """A rotation of heads; its gradient is the rotation backwards."""

    @staticmethod
    def forward(ctx, table, positions, bits, *contents):
        ctx.save_for_backward(table, positions)
        ctx.bits = bits
        ctx.set_materialize_grads(False)
        return rotate_heads(contents, table, positions, RotaryLayout.of(bits))  # records nothing

    @staticmethod
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride]
        table, positions = ctx.saved_tensors
        known = tuple([gradient for gradient in gradients if gradient is not None])
        layout = RotaryLayout.of(ctx.bits).backwards()
        back = iter(rotate_heads(known, table, positions, layout) if known else ())
        return None, None, None, *[None if g is None else next(back) for g in gradients]


def by_formula(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """``rotate_heads`` in torch's own operations; all is computed before anything is written."""
    made = [reference.rotate_heads(x, table, positions, layout) for x in contents]
    return tuple(written(x, out) for x, out in zip(made, outs or [None] * len(made), strict=True))


def rotate(
    x: Float[Tensor, "*shape head_dim"],
    cos: Float[Tensor, "*rows pairs"],
    sin: Float[Tensor, "*rows pairs"],
    *,
    pairing: Pairing = "half",
    rotated: Rotated = "prefix",
    conjugate: bool = False,
) -> Float[Tensor, "*shape head_dim"]:
    """``posenc.kernels.rotary.reference.rotate``, bit for bit, by the fastest kernel there is."""
    fits = x.ndim in (3, 4) and cos.dtype is TABLES.get(x.dtype)
    if not fits or not serve(x, cos, sin) or recorded(x, cos, sin):
        return reference.rotate(x, cos, sin, pairing=pairing, rotated=rotated, conjugate=conjugate)
    try:
        layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", True, conjugate)
        return ROTARY_BY(x, cos, sin, layout.bits)
    except RuntimeError as error:
        raise refusal(error) from None


def _formula(parts: int, looked_up: bool, form: str) -> Callable[..., Any]:
    """The formula with the arguments of one operator."""

    def formula(*given: Any) -> Any:
        contents, table, positions, layout, outs = _parted(given, parts, looked_up, form)
        made = by_formula(contents, table, positions, layout, outs)
        return _results(made, form)

    return formula


def _by_triton(parts: int, looked_up: bool, form: str) -> Callable[..., Any]:
    """The same by Triton, where that takes it."""

    def run(*given: Any) -> Any:
        from posenc.kernels.rotary import triton

        contents, table, positions, layout, outs = _parted(given, parts, looked_up, form)
        made = triton.rotate_heads(contents, table, positions, layout, outs)
        if made is None:
            made = by_formula(contents, table, positions, layout, outs)
        elif outs is not None:
            increment_version(outs)
        return _results(made, form)

    return run


def _shaped(parts: int, form: str) -> Callable[..., Any]:
    def shaped(*given: Any) -> Any:
        check_devices(*[x for x in given if isinstance(x, Tensor)])
        made = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in given[:parts]]
        return _results(tuple(made), form)

    return shaped


def _parted(given: tuple[Any, ...], parts: int, looked_up: bool, form: str) -> tuple[Any, ...]:
    """Arguments of an operator as those of ``rotate_heads``."""
    contents, (table, *others, bits) = given[:parts], given[parts:]
    positions = others.pop(0) if looked_up else None
    outs = contents if form == IN_PLACE else tuple(others) or None
    return contents, table, positions, RotaryLayout.of(bits), outs


def _results(made: tuple[Tensor, ...], form: str) -> Any:
    if form != FRESH:
        return None
    return made if len(made) == 2 else made[0]


def _rotary_by(x, cos, sin, bits):
    layout = RotaryLayout.of(bits)
    return reference.rotate(
        x, cos, sin,
        pairing=layout.pairing, rotated=layout.rotated, conjugate=layout.conjugate,
    )  # fmt: skip


def _rotary_by_triton(x, cos, sin, bits):
    from posenc.kernels.rotary import triton

    made = triton.rotate(x, cos, sin, RotaryLayout.of(bits | RotaryLayout().bits))
    return _rotary_by(x, cos, sin, bits) if made is None else made


OPERATORS = {
    (parts, looked_up, form): register(
        "rotary" + "_both" * (parts - 1) + "_at" * looked_up + form,
        _formula(parts, looked_up, form),
        _shaped(parts, form),
        _by_triton(parts, looked_up, form),
    )
    for parts, looked_up, form in product((1, 2), (False, True), (FRESH, IN_PLACE, OUT))
}
"""By how many tensors are rotated, whether rows are looked up, and where results go."""

ROTARY_BY = register("rotary_by", _rotary_by, _shaped(1, FRESH), _rotary_by_triton)
