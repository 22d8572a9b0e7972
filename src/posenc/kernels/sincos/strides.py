"""How a table of cosines and sines is walked through: strides checked and planned."""

from ctypes import Structure, c_int64
from functools import lru_cache

import torch

from posenc.kernels.strides import Strided, may_meet_itself

FORMATS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
"""Formats of sincos.c. float64 is not among them: it is not correctly rounded anyhow."""


class SinCosPlan(Structure):
    """``struct sincos_plan`` of sincos.c: sizes and strides, in elements, and no addresses."""

    _fields_ = [
        (name, c_int64)
        for name in (
            *("format", "rows", "frequencies"),
            *("positions_step", "row_step", "column_step", "sine"),
        )
    ]


@lru_cache(maxsize=1024)
def sincos_plan(
    table: Strided, axis: int, cos_first: bool, positions: Strided, frequencies: int
) -> SinCosPlan | None:
    """The plan for filling a table; ``None`` for what no kernel takes.

    Args:
        table: ``[*shape, 2, frequencies]``, or ``[*shape, frequencies, 2]``.
        axis: Which of these two it is; see ``posenc.numerics.columns``.
        cos_first: Whether cosines come before sines.
        positions: int64, ``[*shape]``.
        frequencies: How many there are.
    """
    (shape, steps, dtype), (places, over, index) = table, positions
    two, columns = (-2, -1) if axis == -2 else (-1, -2)
    if dtype not in FORMATS or index is not torch.int64 or shape[:-2] != places:
        return None
    if shape[two] != 2 or shape[columns] != frequencies or may_meet_itself(shape, steps):
        return None
    row_step, positions_step = one_axis(places, steps[:-2]), one_axis(places, over)
    if row_step is None or positions_step is None:
        return None
    rows = 1
    for size in places:
        rows *= size
    sine = steps[two] if cos_first else -steps[two]
    return SinCosPlan(
        FORMATS[dtype], rows, frequencies, positions_step, row_step, steps[columns], sine
    )


def one_axis(shape: tuple[int, ...], steps: tuple[int, ...]) -> int | None:
    """The stride of all axes as one, if they are as good as one; 0 is the step of repeats.

    Example:
        >>> one_axis((2, 3), (12, 4)), one_axis((2, 3), (4, 8)), one_axis((1, 3), (7, 4))
        (4, None, 4)
    """
    whole = step = None
    size = 1
    for length, stride in zip(reversed(shape), reversed(steps), strict=True):
        if length == 1:
            continue
        if step is None:
            whole = stride
        elif stride != step * size:
            return None
        size, step = length, stride
    return 1 if whole is None else whole
