"""Addition of a table to content in C: ``csrc/addition.c``."""

from collections.abc import Callable
from ctypes import POINTER, Structure, c_double, c_int64, c_uint64, c_void_p
from functools import cache

import torch
from torch import Tensor

from posenc.guards import on_cpu
from posenc.kernels.addition.strides import AdditionPlan, addition_plan
from posenc.kernels.autograd import note_writes
from posenc.kernels.library import library
from posenc.kernels.philox import Dropping
from posenc.kernels.strides import strided, strided_or_none

NO_SUCH_ROW, UNFIT, NO_SUCH_ID = 1, 2, 3
"""Outcomes of addition.c."""


class AdditionOperands(Structure):
    """``struct addition_operands`` of addition.c: addresses and numbers."""

    _fields_ = [
        *[(name, c_void_p) for name in ("x", "table", "out", "ids", "positions")],
        *[(name, c_double) for name in ("scale", "rescale")],
        *[(name, c_uint64) for name in ("threshold", "key")],
        ("fresh", c_int64),
    ]


@cache
def _native() -> Callable[[AdditionPlan, AdditionOperands, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_add.argtypes = [POINTER(AdditionPlan), POINTER(AdditionOperands), c_int64]
    return native.posenc_add


def scaled_sum(
    x: Tensor,
    table: Tensor | None,
    *,
    ids: Tensor | None = None,
    positions: Tensor | None = None,
    scale: float | None = None,
    dropping: Dropping | None = None,
    out: Tensor | None = None,
) -> Tensor | None:
    """``reference.scaled_sum`` bit for bit, or ``None`` where C does not take it.

    Nothing is written where it does not. That operations run as they are called, and gradients, are
    the caller's business.

    Args:
        x: Content, or with ``ids`` the vectors ``[rows, dim]`` to look up.
        table: What is added, if anything is.
        ids: Which row of ``x`` each token is.
        positions: Which row of ``table`` each token takes.
        scale: What ``x`` is multiplied with first.
        dropping: Which elements become 0.
        out: Where to write; ``x`` itself adds in place.

    Raises:
        IndexError: A position is not a row of the table, or an id not one of ``x``.
    """
    rescale = 1.0 if dropping is None else dropping.rescale
    return _run(x, table, ids, positions, 1.0 if scale is None else scale, rescale, dropping, out)


def gradient_of_x(
    gradient: Tensor, scale: float | None, dropping: Dropping | None
) -> Tensor | None:
    """``reference.gradient_of_x`` bit for bit, or ``None``."""
    scale = 1.0 if scale is None else scale
    if dropping is None:
        return _run(gradient, None, None, None, scale, 1.0, None, None)
    return _run(gradient, None, None, None, dropping.rescale, scale, dropping, None)


def _run(
    x: Tensor,
    table: Tensor | None,
    ids: Tensor | None,
    positions: Tensor | None,
    scale: float,
    rescale: float,
    dropping: Dropping | None,
    out: Tensor | None,
) -> Tensor | None:
    native = _native()
    others = [other for other in (table, ids, positions, out) if other is not None]
    if native is None or not on_cpu(x, *others):
        return None
    planned = addition_plan(
        strided(x),
        strided_or_none(table),
        strided_or_none(out),
        strided_or_none(ids),
        strided_or_none(positions),
    )
    if planned is None:
        return None
    plan, shape = planned
    threshold, key = (0, 0) if dropping is None else (dropping.threshold, dropping.key)
    try:
        made = torch.empty(shape, dtype=x.dtype, device="cpu") if out is None else out
        operands = AdditionOperands(
            x.data_ptr(), _address(table), made.data_ptr(), _address(ids), _address(positions),
            scale, rescale, threshold, key, out is None,
        )  # fmt: skip
    except RuntimeError:
        return None  # no memory, as of sparse tensors and in torch's older vmap
    outcome = native(plan, operands, torch.get_num_threads())
    if outcome == UNFIT:
        return None
    if outcome == NO_SUCH_ROW:
        raise IndexError(
            "A position is negative or past the last row of the table. Build the table for all "
            "positions that are asked for."
        )
    if outcome == NO_SUCH_ID:
        raise IndexError(
            f"An id is negative or past the last of {x.shape[0]} vectors. Map unknown tokens and "
            f"padding to an id that exists."
        )
    if out is not None:
        note_writes((out,))
    return made


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
