"""Tables of cosines and sines in C: ``csrc/sincos.c``."""

from collections.abc import Callable
from ctypes import POINTER, Structure, c_double, c_int64, c_void_p
from functools import cache

import torch
from torch import Tensor

from posenc.guards import on_cpu
from posenc.kernels.autograd import note_writes
from posenc.kernels.library import library
from posenc.kernels.sincos.strides import SinCosPlan, sincos_plan
from posenc.kernels.strides import apart, strided
from posenc.numerics.columns import Columns
from posenc.numerics.sincos import SinCos

DONE = 0
"""Outcome of sincos.c."""


class SinCosOperands(Structure):
    """``struct sincos_operands`` of sincos.c: addresses and numbers."""

    _fields_ = [
        *[(name, c_void_p) for name in ("positions", "turns", "radians", "cos")],
        ("factor", c_double),
        ("fresh", c_int64),
    ]


@cache
def _native() -> Callable[[SinCosPlan, SinCosOperands, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_sincos.argtypes = [POINTER(SinCosPlan), POINTER(SinCosOperands), c_int64]
    return native.posenc_sincos


def fill(
    columns: Columns,
    positions: Tensor,
    sincos: SinCos,
    factor: float = 1.0,
    fresh: bool = False,
) -> bool:
    """Write factor · cos and factor · sin of position × frequency, correctly rounded.

    Args:
        columns: Where; float32, bfloat16 or float16.
        positions: int64, one a row.
        sincos: The frequencies.
        factor: What both are multiplied with before the one rounding.
        fresh: Whether the table is memory that nothing has been written to.

    Returns:
        Whether it was done; if not, nothing was written.
    """
    native, table = _native(), columns.table
    if native is None or not on_cpu(table, positions) or table.requires_grad:
        return False
    try:
        places = strided(positions)
        plan = sincos_plan(strided(table), columns.axis, columns.cos_first, places, len(sincos))
        if plan is None or not (fresh or apart(table, positions)):
            return False
        (words, _), (radians, _) = sincos.words.buffer_info(), sincos.radians.buffer_info()
        cos = table.data_ptr() + columns.cos_place * table.element_size()
        operands = SinCosOperands(positions.data_ptr(), words, radians, cos, factor, fresh)
    except RuntimeError:
        return False  # no strides or no memory, as of sparse tensors and in torch's older vmap
    if native(plan, operands, torch.get_num_threads()) != DONE:
        return False
    note_writes((table,))
    return True
