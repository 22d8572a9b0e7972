"""What rows of a table are like: their norms and ranges, and what a reader asks for first."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.base import TokenEncoding
from posenc.inspection.precision import unique_up_to
from posenc.inspection.shift import shift_map
from posenc.inspection.similarity import closest_pair
from posenc.positions import consecutive


@dataclass(frozen=True)
class NormShares:
    """Lengths token by token."""

    embedding: Float[Tensor, "seq"]  #: of the embeddings as they are used, scaled or not
    encoding: Float[Tensor, "seq"]  #: ``[seq]``, of the encodings
    total: Float[Tensor, "seq"]  #: ``[seq]``, of the sums
    #: encoding² / (embedding² + encoding²), from 0 to 1; NaN where both vectors are zero
    share: Float[Tensor, "seq"]


def norm_shares(
    embedding: Float[Tensor, "seq dim"], encoding: Float[Tensor, "seq dim"], *, scale: float = 1.0
) -> NormShares:
    """Compare the lengths of embeddings, times ``scale``, and encodings.

    A paired sinusoidal encoding has length √(d/2) everywhere; embeddings drawn with deviation
    1/√d have about 1, and √d with the scale of the paper.

    Example:
        >>> from posenc import Sinusoidal
        >>> shares = norm_shares(torch.ones(3, 8), Sinusoidal(8).table(torch.arange(3)))
        >>> shares.encoding
        tensor([2., 2., 2.])
    """
    told = torch.promote_types(embedding.dtype, torch.float32)
    scaled, added = embedding.double() * scale, encoding.double()  # squares leave float32
    one, other = scaled.norm(dim=-1), added.norm(dim=-1)
    total, share = (scaled + added).norm(dim=-1), other**2 / (one**2 + other**2)
    return NormShares(one.to(told), other.to(told), total.to(told), share.to(told))


def columns_that_move(encoding: Float[Tensor, "seq dim"]) -> Float[Tensor, "dim"]:
    """The range of each column, in float32 at least; small ones hardly tell positions apart.

    Example:
        >>> from posenc import Sinusoidal
        >>> moved = columns_that_move(Sinusoidal(128).table(torch.arange(50)))
        >>> int((moved < 0.1).sum())
        51
    """
    wide = encoding.to(torch.promote_types(encoding.dtype, torch.float32))
    return wide.amax(0) - wide.amin(0)


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
