"""Attention with linear biases."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import RelativeBias
from posenc.numerics import slopes as slope_rules
from posenc.positions import checked

Slopes = Literal["authors", "geometric"]


class ALiBi(RelativeBias):
    """A penalty that grows with distance, each head with a slope of its own.

    bias(h, q, k) = −m_h · |q − k|,  m_h = 2^(−8h / heads) for h = 1 … heads

    The bias comes from the relative distance, never as slope × absolute position: it stays exact
    at any position, and 16-bit content cannot coarsen it.

    Args:
        heads: Number of query heads.
        slopes: ``"authors"``: the recipe of the authors' code for heads that are no power of two.
            ``"geometric"``: the formula above for any number.
        is_causal: A key after its query (which a causal mask hides) is not penalized. The bias of
            the keys before it is the same either way.

    Raises:
        ValueError: ``heads`` is not positive, or ``slopes`` has no such name.

    Reference:
        Press, Smith & Lewis 2022, "Train Short, Test Long", section 3 (arXiv:2108.12409).

    Example:
        >>> ALiBi(heads=2).profile(torch.tensor([0, 1, 2]))
        tensor([[ 0.0000, -0.0625, -0.1250],
                [ 0.0000, -0.0039, -0.0078]])
    """

    def __init__(self, heads: int, *, slopes: Slopes = "authors", is_causal: bool = False):
        super().__init__()
        if slopes not in get_args(Slopes):
            raise ValueError(f"slopes is {slopes!r}; it must be one of {get_args(Slopes)}.")
        authors = slope_rules.alibi(heads)
        self.heads, self.is_causal = heads, is_causal
        self.rule: Slopes = slopes
        self.slopes = authors if slopes == "authors" else slope_rules.geometric(heads)

    def profile(
        self, distance: Int64[Tensor, "*shape"], *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """−m_h · |distance|, float32 unless another dtype is asked for."""
        distance = checked(distance, "distance")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype is {dtype}; a bias needs a floating dtype.")
        away = distance.clamp(min=0) if self.is_causal else distance.abs()
        wide = torch.float32 if distance.device.type == "mps" else torch.float64
        slopes = torch.tensor(self.slopes, dtype=wide, device=distance.device)
        slopes = slopes.view(-1, *[1] * distance.ndim)
        return (slopes * (-away).to(wide)).to(dtype or torch.float32)

    def extra_repr(self) -> str:
        """The arguments."""
        rule = "" if self.rule == "authors" else f", slopes={self.rule!r}"
        return f"heads={self.heads}{rule}{', is_causal=True' if self.is_causal else ''}"
