"""Rotation of queries and keys in C: ``sources/rotary.c``."""

import ctypes
from collections.abc import Callable
from functools import cache
from struct import Struct

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc.kernels.native.library import library
from posenc.kernels.native.plain import dense, eager
from posenc.kernels.rotary_plan import Layout, Turning, broadcast_plan, table_plan

ADDRESSES = Struct("=8q")
"""``struct places`` of rotary.c."""

NO_SUCH_ROW, UNFIT = 1, 2


@cache
def _native() -> Callable[[bytes, bytes, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_turn.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
    return native.posenc_turn


def turn_heads(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    turning: Turning,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...] | None:
    """One or two tensors of heads rotated, or ``None`` where C does not take them.

    Nothing is written where it does not. Gradients are the caller's business. A step of decoding
    spends more time here than in the kernel, so each attribute is read once and what follows from
    layouts is remembered.

    Args:
        contents: In the layout that ``turning`` says, with a batch axis or without.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes, ``[*batch, seq]``.
        turning: How.
        outs: Where to write, one tensor each; ``contents`` itself rotates in place.

    Raises:
        IndexError: A position is not a row of the table.
    """
    native = _native()
    if native is None or not eager() or not dense(table, *contents):
        return None
    looked_up = None
    if positions is not None:
        if not dense(positions):
            return None
        looked_up = (positions.shape, positions.stride(), positions.dtype)
    try:
        laid = into = _layouts(contents)
        if outs is not contents:
            if outs is not None and not dense(*outs):
                return None
            into = None if outs is None else _layouts(outs)
        rows = (table.shape, table.stride(), table.dtype)
        plan = table_plan(laid, into, rows, looked_up, turning)
        if plan is None:
            return None
        packed, sin = plan
        cos, asked = table.data_ptr(), 0 if positions is None else positions.data_ptr()
        return _run(native, packed, contents, outs, cos, cos + sin, asked)
    except RuntimeError:
        return None  # no strides or no memory, as of sparse tensors and in torch's older vmap


def turn(
    x: Tensor, cos: Tensor, sin: Tensor, turning: Turning, out: Tensor | None = None
) -> Tensor | None:
    """``reference.rotate``, or ``None`` where C does not take it; heads count as first."""
    native = _native()
    if native is None or not eager() or not dense(x, cos, sin):
        return None
    if out is not None and not dense(out):
        return None
    try:
        (laid,), into = _layouts((x,)), None if out is None else _layouts((out,))[0]
        rows = (cos.shape, cos.stride(), cos.dtype)
        plan = broadcast_plan(laid, into, rows, turning)
        if plan is None or rows != (sin.shape, sin.stride(), sin.dtype):
            return None
        outs = None if out is None else (out,)
        made = _run(native, plan, (x,), outs, cos.data_ptr(), sin.data_ptr(), 0)
    except RuntimeError:
        return None
    return None if made is None else made[0]


def _run(
    native: Callable[[bytes, bytes, int], int],
    plan: bytes,
    contents: tuple[Tensor, ...],
    outs: tuple[Tensor, ...] | None,
    cos: int,
    sin: int,
    positions: int,
) -> tuple[Tensor, ...] | None:
    made = [_room(content) for content in contents] if outs is None else outs
    q, k = contents[0].data_ptr(), contents[-1].data_ptr()
    if outs is contents:
        places = ADDRESSES.pack(q, q, k, k, cos, sin, positions, False)
    else:
        into = made[0].data_ptr(), k, made[-1].data_ptr()
        places = ADDRESSES.pack(q, *into, cos, sin, positions, outs is None)
    outcome = native(plan, places, torch.get_num_threads())
    if outcome == UNFIT:
        return None
    if outcome == NO_SUCH_ROW:
        raise IndexError(
            "A position is negative or past the last row of the table. Build the table for all "
            "positions that are asked for."
        )
    if outs is None:
        return tuple(made)
    increment_version(outs)  # autograd notices what is written behind its back
    return outs


def _layouts(tensors: tuple[Tensor, ...]) -> tuple[Layout, ...]:
    x = tensors[0]
    first = (x.shape, x.stride(), x.dtype)
    if len(tensors) == 1:
        return (first,)
    y = tensors[1]
    return first, (y.shape, y.stride(), y.dtype)


def _room(x: Tensor) -> Tensor:
    if x.is_contiguous():
        return torch.empty_like(x)
    return torch.empty_like(x, memory_format=torch.contiguous_format)
