"""Rotation of queries and keys in C: ``sources/rotary.c`` and ``rotary_tensors.c``."""

import ctypes
from collections.abc import Callable
from functools import cache
from itertools import product
from struct import Struct

import torch
from torch import Tensor, empty_like
from torch.autograd.graph import increment_version

from posenc._guards import dense, eager, readable
from posenc.kernels.exchange import exchange
from posenc.kernels.library import library
from posenc.kernels.rotary.strides import Layout, RotaryLayout, broadcast_plan

PLACES = Struct("=8q")
"""``struct places`` of rotary.c."""

TURNED = Struct("=9q")
"""``struct turned`` of rotary_tensors.c."""

NO_SUCH_ROW, UNFIT = 1, 2

INTERLEAVED, SUFFIX, HEADS_FIRST, CONJUGATE, WITH_KEYS, LOOKED_UP, FRESH = (2**i for i in range(7))
FLAGS = {
    layout: INTERLEAVED * layout.interleaved
    + SUFFIX * layout.suffix
    + HEADS_FIRST * layout.heads_first
    + CONJUGATE * layout.conjugate
    for layout in (RotaryLayout(*way) for way in product((False, True), repeat=4))
}


@cache
def _native() -> Callable[[bytes, bytes, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_turn.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
    return native.posenc_turn


@cache
def _native_with_tensors() -> Callable[[bytes], int] | None:
    native, found = _native() and library(), exchange()
    if native is None or found is None:
        return None
    native.posenc_set_exchange(ctypes.byref(found))
    turn = ctypes.PyDLL(native._name).posenc_turn_tensors  # which keeps the interpreter's lock
    turn.argtypes = [ctypes.c_char_p]
    return turn


def turn_heads(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
    width: int | None = None,
) -> tuple[Tensor, ...] | None:
    """One or two tensors of heads rotated, or ``None`` where C does not take them.

    Nothing is written where it does not. Gradients are the caller's business. A step of decoding
    would spend more time on reading tensors here than in the kernel, so C reads them.

    Args:
        contents: In the layout that ``layout`` says, with a batch axis or without.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes, ``[*batch, seq]``.
        layout: How.
        outs: Where to write, one tensor each; ``contents`` itself rotates in place.
        width: What the heads must have; that of the first tensor if not given.

    Raises:
        IndexError: A position is not a row of the table.
    """
    native = _native_with_tensors()
    flags, asked = FLAGS[layout], table
    if positions is not None:
        flags, asked = flags | LOOKED_UP, positions
    if native is None or not contents[0].is_cpu or not eager():
        return None
    if not readable(table, asked, *contents):
        return None
    if outs is not contents and outs is not None and not readable(*outs):
        return None
    q, k = contents[0], contents[-1]
    try:
        if outs is None:
            made = tuple([empty_like(x) if x.is_contiguous() else _room(x) for x in contents])
            flags |= FRESH
        else:
            made = outs
        if len(contents) == 2:
            flags |= WITH_KEYS
        # fmt: off
        outcome = native(TURNED.pack(
            id(q), id(k), id(made[0]), id(made[-1]), id(table), id(asked),
            q.shape[-1] if width is None else width, flags, torch.get_num_threads(),
        ))
        # fmt: on
    except (RuntimeError, BufferError):
        return None  # no strides or no memory, as of sparse tensors and in torch's older vmap
    if not _done(outcome):
        return None
    if outs is not None:
        increment_version(outs)  # autograd notices what is written behind its back
    return made


def turn(
    x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout, out: Tensor | None = None
) -> Tensor | None:
    """``reference.rotate``, or ``None`` where C does not take it; heads count as first."""
    native = _native()
    if native is None or not eager() or not dense(x, cos, sin):
        return None
    if out is not None and not dense(out):
        return None
    try:
        rows = _layout(cos)
        plan = broadcast_plan(_layout(x), None if out is None else _layout(out), rows, layout)
        if plan is None or rows != _layout(sin):
            return None
        made = _room(x) if out is None else out
        # fmt: off
        places = PLACES.pack(
            x.data_ptr(), made.data_ptr(), 0, 0, cos.data_ptr(), sin.data_ptr(), 0, out is None,
        )
        # fmt: on
        if not _done(native(plan, places, torch.get_num_threads())):
            return None
    except RuntimeError:
        return None
    if out is not None:
        increment_version((out,))
    return made


def _done(outcome: int) -> bool:
    if outcome == NO_SUCH_ROW:
        raise IndexError(
            "A position is negative or past the last row of the table. Build the table for all "
            "positions that are asked for."
        )
    return outcome != UNFIT


def _layout(x: Tensor) -> Layout:
    return x.shape, x.stride(), x.dtype


def _room(x: Tensor) -> Tensor:
    return empty_like(x, memory_format=torch.contiguous_format)
