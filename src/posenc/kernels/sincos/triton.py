"""Tables of cosines and sines on an accelerator, correctly rounded."""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from functools import lru_cache
from struct import Struct

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc.kernels.sincos import triton_phase as phase
from posenc.kernels.sincos.cpu import FORMATS, one_axis

PHASES = 512
"""Of one program."""

DOUBT = tl.constexpr(2.0**-49)
"""Bound on |v − truth| / |v| after a series, a factor and the addition of the bound itself."""

BITS, DOUBLE = Struct("=q"), Struct("=d")


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


@triton.jit(do_not_specialize=["factor_bits"])
def sincos_kernel(
    cos, sin, positions, words, rows, row_step, column_step, factor_bits,
    FREQUENCIES: tl.constexpr, STORED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Some rows of both tables at some frequencies; STORED is the format."""
    chunks = tl.cdiv(FREQUENCIES, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    row = program // chunks * ROWS + tl.arange(0, ROWS)
    column = program % chunks * BLOCK + tl.arange(0, BLOCK)
    position = tl.load(positions + row, mask=row < rows, other=0)[:, None]
    there = column < FREQUENCIES
    low = tl.load(words + column, mask=there, other=0).to(tl.uint64, bitcast=True)
    middle = tl.load(words + FREQUENCIES + column, mask=there, other=0)
    high = tl.load(words + 2 * FREQUENCIES + column, mask=there, other=0)
    middle, high = middle.to(tl.uint64, bitcast=True), high.to(tl.uint64, bitcast=True)
    position = tl.broadcast_to(position, (ROWS, BLOCK))
    high, middle, low = phase.phase_of(position, high[None, :], middle[None, :], low[None, :])
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


def fill(
    cos: Tensor, sin: Tensor, positions: Tensor, turns: tuple[int, ...], factor: float = 1.0
) -> bool:
    """Write factor · cos and factor · sin of position × frequency, correctly rounded.

    Args:
        cos: ``[*shape, frequencies]``; float32, bfloat16 or float16.
        sin: The same, with the same strides.
        positions: int64, ``[*shape]``, on the same device.
        turns: Frequencies as fixed-point turns a position.
        factor: What both are multiplied with before the one rounding.

    Returns:
        Whether it was done; if not, nothing was written.
    """
    if cos.dtype not in FORMATS or sin.dtype is not cos.dtype:
        return False
    if positions.dtype is not torch.int64 or cos.requires_grad or sin.requires_grad:
        return False
    rows, steps = one_axis(cos.shape[:-1], cos.stride()[:-1]), cos.stride()
    if rows is None or cos.shape != sin.shape or steps != sin.stride():
        return False
    if cos.shape != (*positions.shape, len(turns)):
        return False
    block = min(triton.next_power_of_2(max(len(turns), 1)), PHASES)
    together, chunks = PHASES // block, triton.cdiv(len(turns), block)
    programs = triton.cdiv(positions.numel(), together) * chunks
    if programs:
        with torch.cuda.device_of(cos):
            sincos_kernel[(programs,)](
                cos, sin, positions.contiguous(), _words(turns, cos.device),
                positions.numel(), rows, steps[-1], BITS.unpack(DOUBLE.pack(factor))[0],
                FREQUENCIES=len(turns), STORED=_format(cos.dtype), ROWS=together, BLOCK=block,
                enable_fp_fusion=False,
            )  # fmt: skip
        increment_version((cos, sin))
    return True


def _format(dtype: torch.dtype) -> tl.dtype:
    return {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}[
        dtype
    ]


@lru_cache(maxsize=64)
def _words(turns: tuple[int, ...], device: torch.device) -> Tensor:
    """The three words of each frequency, the lowest first; unsigned, in int64."""
    rows = [[BITS.unpack((turn >> 64 * j & 2**64 - 1).to_bytes(8, "little"))[0] for turn in turns]
            for j in range(3)]  # fmt: skip
    return torch.tensor(rows, dtype=torch.int64, device=device)
