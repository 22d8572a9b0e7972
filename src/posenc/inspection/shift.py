"""The linear map that moves every row of an encoding by one offset, if there is one."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens import Sinusoidal
from posenc.numerics.sincos import SinCos
from posenc.positions import consecutive


@dataclass(frozen=True)
class ShiftMap:
    """M with PE(p + k) ≈ M PE(p) for all positions p that were looked at."""

    offset: int  #: k, in positions
    matrix: Float[Tensor, "dim dim"]  #: ``[dim, dim]``
    residual: float  #: the largest error that it leaves in any channel
    exact: bool  #: whether M rotates the pairs; otherwise it is the best map by least squares
    reason: str  #: why there is no rotation; empty where there is


def shift_map(encoding: TokenEncoding, offset: int, *, length: int = 256) -> ShiftMap:
    """The map of an offset, and the error that it leaves over ``length`` positions.

    With a sine and a cosine of each frequency ω the two channels turn by kω, whatever p:
    a block [[cos kω, sin kω], [−sin kω, cos kω]] takes (sin pω, cos pω) to those of p + k. Where
    they have no common frequency no such block exists, and the best map for the rows at hand is
    found instead, as of encodings that are not sinusoidal. k may be negative.

    Reference:
        Vaswani et al. 2017, section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a
        linear function of PE(pos)" (arXiv:1706.03762).

    Example:
        >>> shift = shift_map(Sinusoidal(8), 10)
        >>> shift.exact, shift.residual < 1e-14
        (True, True)
        >>> shift_map(Sinusoidal(8, convention="per_dimension"), 10).reason
        'sines and cosines have no common frequency'
    """
    rows = encoding.table(consecutive(length), dtype=torch.float64).detach()
    moved = encoding.table(consecutive(length, start=offset), dtype=torch.float64).detach()
    if reason := _reason(encoding):
        matrix = torch.linalg.lstsq(rows, moved, driver="gelsd").solution.mT
    else:
        matrix = _rotation(encoding, offset)
    residual = (rows @ matrix.mT - moved).abs().max().item()
    return ShiftMap(offset, matrix, residual, not reason, reason)


def _reason(encoding: TokenEncoding) -> str:
    if not isinstance(encoding, Sinusoidal):
        return "the encoding is not sinusoidal"
    if encoding.arithmetic != "exact":
        return "angles are rounded to float32, and do not add up"
    if encoding.keeps_shift:
        return ""
    waveform = encoding.convention.waveform(encoding.dim, encoding.base)
    sines, cosines = waveform.sines.numerators, waveform.cosines.numerators
    if not cosines or {*sines} & {*cosines}:
        return "the width is odd: the last sine has no cosine"
    return "sines and cosines have no common frequency"


def _rotation(encoding: Any, offset: int) -> Tensor:
    waveform = encoding.convention.waveform(encoding.dim, encoding.base)
    cos, sin = SinCos(waveform.sines).cos_sin(torch.tensor(offset), torch.float64)
    matrix = torch.eye(encoding.dim, dtype=torch.float64)
    pairs = zip(waveform.sine_channels, waveform.cosine_channels, strict=True)
    for pair, (s, c) in enumerate(pairs):
        matrix[s, s] = matrix[c, c] = cos[pair]
        matrix[s, c], matrix[c, s] = sin[pair], -sin[pair]
    return matrix
