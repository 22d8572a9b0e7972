"""Distances around a ring, for any bias of distance: cyclic peptides, angles, hours of a day."""

from posenc.arguments import check_whole
from posenc.encodings.bias import RelativeBias, ScoreBias, take_claims
from posenc.encodings.shapes import Dtype, Profile, WholeDistance
from posenc.positions import checked
from posenc.positions.distances import around


class Cyclic(RelativeBias):
    """A bias of the shorter way around a ring: bias(h, d) at d − period · round(d / period)

    so that the last of ``period`` tokens stands just before the first. At half of an even ring the
    distance keeps its sign, as in AfCycDesign; Boltz rounds half to even.

    Args:
        bias: A bias of distance, for as many heads. A causal one takes the ring one way alone.

    Reference:
        Rettie et al. 2023, "Cyclic peptide structure prediction and design using AlphaFold", whose
        code calls it a cyclic offset; Boltz-1 and 2, ``cyclic_period``.

    Example:
        >>> import torch
        >>> from posenc import ALiBi
        >>> Cyclic(1, ALiBi(1, slopes=(1.0,)), period=6).profile(torch.arange(7))
        tensor([[ 0., -1., -2., -3., -2., -1.,  0.]])
    """

    def __init__(self, heads: int, bias: ScoreBias, period: int):
        super().__init__()
        check_whole(heads=heads, period=period)
        if not getattr(bias, "has_profile", False) or bias.heads != heads:
            raise ValueError(f"bias is {bias!r}; it must be a RelativeBias of {heads} heads.")
        self.heads, self.bias, self.period = heads, bias, period
        take_claims(self, bias)

    def profile(self, distance: WholeDistance, *, dtype: Dtype = None) -> Profile:
        distance = around(checked(distance, "distance"), self.period)
        return self.bias.profile(distance, dtype=dtype)  # type: ignore[operator]
