"""Tables of cosines and sines in C: ``sources/sincos.c``."""

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc._guards import dense, eager
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.library import library

FORMATS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
"""Formats of sincos.c. float64 is not among them: it is not correctly rounded anyhow."""

WAVES = Struct("=11qdq")
"""``struct sincos`` of sincos.c."""

WORD = 64
RADIANS = 6.283185307179586


@cache
def _native() -> Callable[[bytes, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_waves.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    return native.posenc_waves


def fill(
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    turns: tuple[int, ...],
    factor: float = 1.0,
    fresh: bool = False,
) -> bool:
    """Write factor · cos and factor · sin of position × frequency, correctly rounded.

    Args:
        cos: ``[*shape, frequencies]``; float32, bfloat16 or float16.
        sin: The same, with the same strides.
        positions: int64, ``[*shape]``.
        turns: Frequencies as fixed-point turns a position.
        factor: What both are multiplied with before the one rounding.
        fresh: Whether the table is memory that nothing has been written to.

    Returns:
        Whether it was done; if not, nothing was written.
    """
    native = _native()
    if native is None or not eager() or not dense(cos, sin, positions):
        return False
    if cos.dtype not in FORMATS or sin.dtype is not cos.dtype:
        return False
    if positions.dtype is not torch.int64 or cos.requires_grad or sin.requires_grad:
        return False
    frequencies = _frequencies(turns)  # referred to until C is done with them
    try:
        sincos = _packed(cos, sin, positions, frequencies, factor, fresh)
    except RuntimeError:
        return False  # no strides or no memory, as of sparse tensors and in torch's older vmap
    if sincos is None or native(sincos, torch.get_num_threads()) != 0:
        return False
    increment_version((cos, sin))
    return True


def _packed(
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    frequencies: tuple[ctypes.Array, ctypes.Array],
    factor: float,
    fresh: bool,
) -> bytes | None:
    words, radians = frequencies
    rows, steps = one_axis(cos.shape[:-1], cos.stride()[:-1]), cos.stride()
    places = one_axis(positions.shape, positions.stride())
    if rows is None or places is None or cos.shape != sin.shape or steps != sin.stride():
        return None
    if cos.shape[:-1] != positions.shape or cos.shape[-1] != len(radians):
        return None
    # fmt: off
    return WAVES.pack(
        FORMATS[cos.dtype], positions.numel(), len(radians),
        positions.data_ptr(), places, ctypes.addressof(words), ctypes.addressof(radians),
        cos.data_ptr(), sin.data_ptr(), rows, steps[-1], factor, fresh,
    )
    # fmt: on


def one_axis(shape: torch.Size, steps: tuple[int, ...]) -> int | None:
    """The stride of all axes as one, if they are as good as one. 0 is the step of repeats."""
    whole, step = None, 1
    size = 1
    for length, stride in zip(reversed(shape), reversed(steps), strict=True):
        if length == 1:
            continue
        if whole is None:
            whole = step = stride
        elif stride != step * size:
            return None
        size, step = length, stride
    return 1 if whole is None else whole


@lru_cache(maxsize=64)
def _frequencies(turns: tuple[int, ...]) -> tuple[ctypes.Array, ctypes.Array]:
    """``struct turn`` of phase.h for each frequency, and its size in radians a position."""
    mask = (1 << WORD) - 1
    shifts = (2 * WORD, WORD, 0)
    words = [(turn >> shift) & mask for turn in turns for shift in shifts]
    radians = [abs(turn) * 2.0**-TURN_BITS * RADIANS for turn in turns]
    return (ctypes.c_uint64 * len(words))(*words), (ctypes.c_double * len(radians))(*radians)
