"""Positions written in binary beside the waves of an encoding: both count."""

from itertools import pairwise

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.frequencies import Schedule
from posenc.numerics.sincos import SinCos
from posenc.positions import consecutive


def binary_digits(length: int, *, bits: int | None = None) -> Int64[Tensor, "length bits"]:
    """The digits of 0 … length − 1, the lowest first; digit j changes every 2^j positions.

    Example:
        >>> binary_digits(4)
        tensor([[0, 0],
                [1, 0],
                [0, 1],
                [1, 1]])
    """
    bits = max(1, (length - 1).bit_length()) if bits is None else bits
    return consecutive(length).unsqueeze(-1) >> torch.arange(bits) & 1


def sines(schedule: Schedule, length: int) -> Float[Tensor, "length pairs"]:
    """The sines of a schedule at 0 … length − 1, in float64; pair i turns once a wavelength.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> sines(Geometric(4), 2)[1]
        tensor([0.8415, 0.0100], dtype=torch.float64)
    """
    return SinCos(schedule).cos_sin(consecutive(length), torch.float64)[1]


def period_ratio(schedule: Schedule) -> tuple[float, ...]:
    """How many times slower each pair is than the one before; a binary counter has 2 throughout.

    A pair that does not turn is infinitely slower than one that does; of two such it is NaN.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> [round(r, 3) for r in period_ratio(Geometric(8))]
        [10.0, 10.0, 10.0]
    """
    return tuple(slower / faster for faster, slower in pairwise(schedule.wavelengths()))
