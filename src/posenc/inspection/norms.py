"""How long embeddings and encodings are, and how much of their sum each is."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


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
        >>> import torch
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
        >>> import torch
        >>> from posenc import Sinusoidal
        >>> moved = columns_that_move(Sinusoidal(128).table(torch.arange(50)))
        >>> int((moved < 0.1).sum())
        51
    """
    wide = encoding.to(torch.promote_types(encoding.dtype, torch.float32))
    return wide.amax(0) - wide.amin(0)
