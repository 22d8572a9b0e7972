"""Tables of cosines and sines on an accelerator, correctly rounded."""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from struct import Struct

import torch
import triton
import triton.language as tl
from torch import Tensor

from posenc.kernels.sincos import triton_phase as phase
from posenc.numerics.columns import Columns

PHASES = 512
"""Of one program."""

DOUBT = tl.constexpr(2.0**-49)
"""Bound on |v − truth| / |v| after a series, a factor and the addition of the bound itself."""

BITS, DOUBLE = Struct("=q"), Struct("=d")

STORED = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
"""Names of formats."""


@triton.jit
def rounded(value, STORED: tl.constexpr):
    """A float64 to a narrower format, once; to one of 16 bits by way of float32 rounded to odd."""
    nearest = value.to(tl.float32)
    if tl.float32 != STORED:
        back = nearest.to(tl.float64)
        bits = nearest.to(tl.int32, bitcast=True)
        bits -= (tl.abs(back) > tl.abs(value)).to(tl.int32)
        bits |= (back != value).to(tl.int32)
        nearest = bits.to(tl.float32, bitcast=True)
    return nearest.to(STORED)


@triton.jit
def odd(high, low):
    """A pair as one float64, rounded to odd: what is rounded from it is as if rounded once."""
    bits = high.to(tl.int64, bitcast=True)
    bits -= (low != 0.0).to(tl.int64) * ((low < 0.0) != (high < 0.0)).to(tl.int64)
    bits |= (low != 0.0).to(tl.int64)
    return bits.to(tl.float64, bitcast=True)


@triton.jit
def settled(value, high, middle, low, across, minus, factor, STORED: tl.constexpr):
    """``value`` rounded once: for certain where it is in doubt, as any sum of it and the bound."""
    bound = tl.abs(value) * DOUBT
    sure, other = rounded(value - bound, STORED), rounded(value + bound, STORED)
    doubtful = (sure != other).to(tl.int32)
    if tl.max(tl.max(doubtful, 1), 0) != 0:
        angle, rest = phase.two_radians(high, middle, low)
        angle, rest = phase.two_series(angle, rest, across)
        none = angle * 0.0
        angle, rest = phase.two_times(angle, rest, none + factor, none)
        exact = odd(angle, rest)
        sure = tl.where(doubtful != 0, rounded(tl.where(minus, -exact, exact), STORED), sure)
    return sure


@triton.jit
def word_at(words, there):
    """One word of each frequency, in a row."""
    return tl.load(words, mask=there, other=0).to(tl.uint64, bitcast=True)[None, :]


@triton.jit(do_not_specialize=["factor_bits"])
def sincos_kernel(
    cos, sin, positions, words, rows, positions_step, row_step, column_step, factor_bits,
    FREQUENCIES: tl.constexpr, STORED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Some rows of both tables at some frequencies; STORED is the format."""
    chunks = tl.cdiv(FREQUENCIES, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    row = program // chunks * ROWS + tl.arange(0, ROWS)
    column = program % chunks * BLOCK + tl.arange(0, BLOCK)
    position = tl.load(positions + row * positions_step, mask=row < rows, other=0)[:, None]
    there = column < FREQUENCIES
    position = tl.broadcast_to(position, (ROWS, BLOCK))
    low = word_at(words + 3 * column, there)
    middle = word_at(words + 3 * column + 1, there)
    high = word_at(words + 3 * column + 2, there)
    high, middle, low = phase.phase_of(position, high, middle, low)
    high, middle, low, quadrant, negative = phase.reduced(high, middle, low)

    angle = phase.radians_of(high, middle, low)
    across, along = (quadrant & 1) != 0, (quadrant & 1) == 0
    factor = factor_bits.to(tl.int64).to(tl.float64, bitcast=True)
    c, s = phase.cosine_series(angle), phase.sine_series(angle)
    cos_minus = ((quadrant == 1) | (quadrant == 2)) != (across & negative)
    sin_minus = (quadrant >= 2) != (along & negative)
    for_cos, for_sin = tl.where(across, s, c) * factor, tl.where(across, c, s) * factor
    for_cos = tl.where(cos_minus, -for_cos, for_cos)
    for_sin = tl.where(sin_minus, -for_sin, for_sin)
    for_cos = settled(for_cos, high, middle, low, across, cos_minus, factor, STORED)
    for_sin = settled(for_sin, high, middle, low, along, sin_minus, factor, STORED)
    at = row[:, None] * row_step + column[None, :] * column_step
    here = (row < rows)[:, None] & there[None, :]
    tl.store(cos + at, for_cos, mask=here)
    tl.store(sin + at, for_sin, mask=here)


def fill(columns: Columns, positions: Tensor, turns: Tensor, factor: float = 1.0) -> bool:
    """Write factor · cos and factor · sin, correctly rounded; gives whether that was done."""
    table, frequencies, rows = columns.table, len(turns), positions.numel()
    if table.dtype not in STORED or not rows * frequencies:
        return not table.numel()
    cos, sin = columns.cos, columns.sin
    try:
        cos, sin = cos.view(rows, frequencies), sin.view(rows, frequencies)
    except RuntimeError:  # rows have no one stride
        return False
    positions = positions.contiguous().view(-1)
    block = min(triton.next_power_of_2(frequencies), PHASES)
    together, chunks = PHASES // block, triton.cdiv(frequencies, block)
    with torch.cuda.device_of(table):
        sincos_kernel[(triton.cdiv(rows, together) * chunks,)](
            cos, sin, positions, turns.to(table.device), rows, 1, *cos.stride(),
            BITS.unpack(DOUBLE.pack(factor))[0],
            FREQUENCIES=frequencies, STORED=STORED[table.dtype],
            ROWS=together, BLOCK=block, enable_fp_fusion=False,
        )  # fmt: skip
    return True
