"""Rotation of queries and keys in C: ``csrc/rotary.c``, and ``rotary_tensors.c`` in front of it."""

from collections.abc import Callable
from ctypes import POINTER, PyDLL, Structure, byref, c_char_p, c_int64, c_void_p
from functools import cache
from itertools import product
from struct import Struct

import torch
from torch import Tensor, empty_like

from posenc.guards import on_cpu, stored
from posenc.kernels.autograd import note_writes
from posenc.kernels.exchange import exchange
from posenc.kernels.library import library
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.strides import RotaryPlan, broadcast_plan, table_plan
from posenc.kernels.strides import strided, strided_or_none

NO_SUCH_ROW = 1
"""Outcome of rotary.h; 0 is success, and what else there is leaves the work to the reference."""

INTERLEAVED, SUFFIX, HEADS_FIRST, CONJUGATE, WITH_KEYS, LOOKED_UP, FRESH = (2**i for i in range(7))
FLAGS = {
    layout: INTERLEAVED * layout.interleaved
    + SUFFIX * layout.suffix
    + HEADS_FIRST * layout.heads_first
    + CONJUGATE * layout.conjugate
    for layout in (RotaryLayout(*flags) for flags in product((False, True), repeat=4))
}
"""Flags of rotary_tensors.c."""


class RotaryOperands(Structure):
    """``struct rotary_operands`` of rotary.h: addresses."""

    _fields_ = [
        *[(name, c_void_p) for name in ("q", "q_out", "k", "k_out", "cos", "sin", "positions")],
        ("fresh", c_int64),
    ]


TENSORS = ("q", "q_out", "k", "k_out", "table", "positions", "width", "flags", "threads")
"""Fields of ``struct rotary_tensors`` of rotary_tensors.c: objects, then whole numbers."""

# A ctypes.Structure of them takes three times as long to build: a tenth of a step of decoding.
_pack_tensors = Struct(f"={len(TENSORS)}q").pack


@cache
def _native() -> Callable[[RotaryPlan, RotaryOperands, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_rotate.argtypes = [POINTER(RotaryPlan), POINTER(RotaryOperands), c_int64]
    return native.posenc_rotate


@cache
def _native_with_tensors() -> Callable[[bytes], int] | None:
    native, found = _native() and library(), exchange()
    if native is None or found is None:
        return None
    native.posenc_set_exchange(byref(found))
    rotate = PyDLL(native._name).posenc_rotate_tensors  # which keeps the interpreter's lock
    rotate.argtypes = [c_char_p]
    return rotate


def rotate_heads(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
    width: int | None = None,
) -> tuple[Tensor, ...] | None:
    """One or two tensors of heads rotated, or ``None`` where C does not take them.

    Nothing is written where it does not. That operations run as they are called, and gradients, are
    the caller's business. A step of decoding would spend more time on reading tensors here than in
    the kernel, so C reads them; with a torch that cannot hand them over they are read here.

    Args:
        contents: Heads, as ``layout`` says, with a batch axis or without.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes, ``[*batch, seq]``.
        layout: How heads lie and which channels are rotated.
        outs: Where to write, one tensor each; ``contents`` itself rotates in place.
        width: What the heads must have; that of the first tensor if not given.

    Raises:
        IndexError: A position is not a row of the table.
    """
    native = _native_with_tensors()
    if native is None:
        return _rotate_planned(contents, table, positions, layout, outs, width)
    flags, asked = FLAGS[layout], table
    if positions is not None:
        flags, asked = flags | LOOKED_UP, positions
    if not stored(table, asked, *contents):
        return None
    if outs is not contents and outs is not None and not stored(*outs):
        return None
    q, k = contents[0], contents[-1]
    try:
        made = outs
        if made is None:
            made = tuple([empty_like(x) if x.is_contiguous() else _room(x) for x in contents])
            flags |= FRESH
        if len(contents) == 2:
            flags |= WITH_KEYS
        # fmt: off
        outcome = native(_pack_tensors(
            id(q), id(made[0]), id(k), id(made[-1]), id(table), id(asked),
            q.shape[-1] if width is None else width, flags, torch.get_num_threads(),
        ))
        # fmt: on
    except (RuntimeError, BufferError):
        return None  # no strides or no memory, as of sparse tensors and in torch's older vmap
    if outcome:
        return _refused(outcome)
    if outs is not None:
        note_writes(outs)
    return made


def _rotate_planned(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None,
    width: int | None,
) -> tuple[Tensor, ...] | None:
    """``rotate_heads`` by the plan that Triton uses."""
    asked = () if positions is None else (positions,)
    if not on_cpu(table, *asked, *contents, *(outs or ())):
        return None
    if width is not None and contents[0].shape[-1] != width:
        return None
    try:
        laid, into = tuple(map(strided, contents)), outs and tuple(map(strided, outs))
        plan = table_plan(laid, into, strided(table), strided_or_none(positions), layout)
        if plan is None:
            return None
        cos, sin = table.unbind(-2)
        return _run(plan, contents, cos, sin, positions, outs)
    except RuntimeError:
        return None


def rotate(
    x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout, out: Tensor | None = None
) -> Tensor | None:
    """``reference.rotate``, or ``None`` where C does not take it; heads count as first."""
    if not on_cpu(x, cos, sin) or not (out is None or on_cpu(out)):
        return None
    try:
        rows = strided(cos)
        plan = broadcast_plan(strided(x), strided_or_none(out), rows, layout)
        if plan is None or rows != strided(sin):
            return None
        made = _run(plan, (x,), cos, sin, None, None if out is None else (out,))
    except RuntimeError:
        return None
    return None if made is None else made[0]


def _run(
    plan: RotaryPlan,
    contents: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
    outs: tuple[Tensor, ...] | None,
) -> tuple[Tensor, ...] | None:
    native = _native()
    if native is None:
        return None
    made = outs or tuple(map(_room, contents))
    operands = RotaryOperands(
        contents[0].data_ptr(), made[0].data_ptr(), contents[-1].data_ptr(), made[-1].data_ptr(),
        cos.data_ptr(), sin.data_ptr(), None if positions is None else positions.data_ptr(),
        outs is None,
    )  # fmt: skip
    outcome = native(plan, operands, torch.get_num_threads())
    if outcome:
        return _refused(outcome)
    if outs is not None:
        note_writes(outs)
    return made


def _refused(outcome: int) -> None:
    if outcome == NO_SUCH_ROW:
        raise IndexError(
            "A position is negative or past the last row of the table. Build the table for all "
            "positions that are asked for."
        )


def _room(x: Tensor) -> Tensor:
    return empty_like(x, memory_format=torch.contiguous_format)
