"""The properties of a token encoding that a reader asks for first, computed."""

from dataclasses import dataclass

import torch

from posenc.encodings.base import TokenEncoding
from posenc.inspection.shift import shift_map
from posenc.inspection.similarity import closest_pair, unique_up_to
from posenc.positions import consecutive


@dataclass(frozen=True)
class Properties:
    """What holds for positions 0 … length − 1."""

    largest: float  #: the largest size of any value
    closest: float  #: distance of the closest pair of positions
    norm_spread: float  #: the longest row less the shortest
    shift_residual: float  #: what the best linear map for an offset of 10 misses
    distinct_in_bfloat16: int  #: positions with a row of their own after one rounding to bfloat16


def properties_of(encoding: TokenEncoding, length: int) -> Properties:
    """Compute them all.

    Example:
        >>> from posenc import Sinusoidal
        >>> found = properties_of(Sinusoidal(64), 512)
        >>> round(found.largest, 12), found.distinct_in_bfloat16, found.shift_residual < 1e-13
        (1.0, 512, True)
    """
    table = encoding.table(consecutive(length), dtype=torch.float64).detach()
    norms = table.norm(dim=1)
    return Properties(
        largest=table.abs().max().item(),
        closest=closest_pair(encoding, length).distance,
        norm_spread=(norms.max() - norms.min()).item(),
        shift_residual=shift_map(encoding, 10, length=length).residual,
        distinct_in_bfloat16=unique_up_to(encoding, length, dtype=torch.bfloat16),
    )
