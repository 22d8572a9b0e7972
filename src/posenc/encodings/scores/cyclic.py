"""Distances around a ring, for any bias of distance: cyclic peptides, angles, hours of a day."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.bias import RelativeBias, ScoreBias, take_claims
from posenc.numerics.ring import around
from posenc.positions import Integers, checked


class Cyclic(RelativeBias):
    """A bias of the shorter way around a ring: bias(h, d) at d − period · round(d / period)

    so that the last of ``period`` tokens stands beside the first. The sign says which way is
    shorter: the token before the first is at distance 1 and not −1. At half of an even ring both
    ways are as long; the distance keeps its sign there, as AfCycDesign's does. (Boltz rounds half
    to even, so its sign there changes from turn to turn.)

    Args:
        heads: Number of query heads.
        bias: A bias of distance, for as many heads. A causal one takes the ring one way alone.
        period: Number of positions around the ring. It does not learn: distances stay whole.

    Raises:
        TypeError: ``bias`` is no ``RelativeBias``.
        ValueError: ``period`` is not a positive whole number, or the bias is of other heads.

    Reference:
        Rettie et al. 2023, "Cyclic peptide structure prediction and design using AlphaFold", whose
        code calls it a cyclic offset; Boltz-1 and 2, ``cyclic_period``.

    Example:
        >>> from posenc import ALiBi
        >>> Cyclic(1, ALiBi(1, slopes=(1.0,)), period=6).profile(torch.arange(7))
        tensor([[ 0., -1., -2., -3., -2., -1.,  0.]])
    """

    def __init__(self, heads: int, bias: RelativeBias, period: int):
        super().__init__()
        check_whole(heads=heads, period=period)
        if not (isinstance(bias, ScoreBias) and bias.has_profile):
            raise TypeError(
                f"bias is a {type(bias).__name__}; Cyclic takes a RelativeBias, as ALiBi({heads}) "
                f"or T5Bias({heads}), whose distances it takes around a ring."
            )
        if bias.heads != heads:
            raise ValueError(
                f"The bias was built for {bias.heads} heads, and heads is {heads}. Build both for "
                f"as many."
            )
        self.heads, self.bias, self.period = heads, bias, period
        take_claims(self, bias)

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The profile of the bias at the shorter distances."""
        return self.bias.profile(around(checked(distance, "distance"), self.period), dtype=dtype)

    def extra_repr(self) -> str:
        """The arguments besides the bias."""
        return f"heads={self.heads}, period={self.period}"
