"""Frequencies of pairs: as digits of a counter, as directions in space, and scaled."""

from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from typing import Literal

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.directed import DirectedRotary
from posenc.encodings.queries_keys.learned import RoPEMixed
from posenc.encodings.queries_keys.multimodal import MultimodalRotary, VJEPA2Rotary
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


def frequency_vectors(encoding: QueryKeyEncoding) -> Float64[Tensor, "*heads pairs axes"]:
    """w of each pair, which turns by ⟨w, p⟩ at a point p: radians a unit along each axis.

    DINOv3's and LTX's encodings turn by where a point is in its grid, and by no such product.

    Example:
        >>> from posenc import AxialRotary
        >>> frequency_vectors(AxialRotary(8))  # (y, x): two pairs along x, then two along y
        tensor([[0.0000, 1.0000],
                [0.0000, 0.1000],
                [1.0000, 0.0000],
                [0.1000, 0.0000]], dtype=torch.float64)
    """
    if isinstance(encoding, DirectedRotary):
        return torch.tensor(encoding.vectors, dtype=torch.float64)
    if isinstance(encoding, RoPEMixed):  # x first
        return encoding.frequencies.detach().double().flip(0).movedim(0, -1)
    if not isinstance(encoding, AxialRotary | MultimodalRotary | VJEPA2Rotary):
        raise TypeError(f"{encoding!r} turns pairs by no product with points.")
    sincos = encoding.sincos
    vectors = torch.zeros(len(sincos.axes), sincos.count, dtype=torch.float64)
    speeds = [iter(schedule.wavelengths()) for schedule in sincos.schedules]
    for pair, axis in enumerate(sincos.axes):
        vectors[pair, axis] = 2 * torch.pi / next(speeds[axis])
    return vectors


Band = Literal["kept", "mixed", "stretched"]


@dataclass(frozen=True)
class Scaling:
    """A schedule beside the plain one."""

    #: wavelengths of the plain schedule, in positions; negative of pairs that turn backwards
    before: tuple[float, ...]
    after: tuple[float, ...]  #: those of the scaled one
    bands: tuple[Band, ...]  #: what happened to each pair
    turns: tuple[float, ...]  #: turns of each pair in the trained length, before
    unseen: int  #: number of pairs that never completed a turn in the trained length
    unseen_after: int  #: number of pairs that complete none in the target length, after
    attention_factor: float  #: what cosines and sines are multiplied with

    def count(self, band: Band) -> int:
        """Number of pairs in a band."""
        return self.bands.count(band)


def scaling_of(
    plain: Schedule, scaled: Schedule, *, trained_length: int, target_length: int
) -> Scaling:
    """Compare two schedules pair by pair.

    A pair is kept where its wavelength changed by less than one part in a million, and stretched
    where it grew as much as that of any pair; the others are mixed.

    Example:
        >>> from posenc.frequencies import Geometric, YaRN
        >>> plain = Geometric(128)
        >>> bands = scaling_of(plain, YaRN(plain, 16.0, 4096), trained_length=4096,
        ...                    target_length=65536)
        >>> bands.count("kept"), bands.count("mixed"), bands.count("stretched"), bands.unseen
        (21, 25, 18, 18)
    """
    before, after = plain.wavelengths(), scaled.wavelengths()
    growth = [1.0 if a == b else b / a for a, b in zip(before, after, strict=True)]
    most = max(growth)
    turns = tuple(trained_length / abs(wavelength) for wavelength in before)
    return Scaling(
        before,
        after,
        bands=tuple(_band(each, most) for each in growth),
        turns=turns,
        unseen=sum(each < 1 for each in turns),
        unseen_after=sum(abs(wavelength) > target_length for wavelength in after),
        attention_factor=scaled.attention_factor,
    )


def _band(growth: float, most: float) -> Band:
    """``most`` is infinite where a pair no longer turns."""
    if isclose(growth, 1, rel_tol=1e-6):
        return "kept"
    return "stretched" if isclose(growth, most, rel_tol=1e-6) else "mixed"
