"""Attention with linear biases."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch

from posenc.arguments import check_choice, check_numbers, check_positive_number, check_whole
from posenc.encodings.bias import RelativeBias
from posenc.encodings.shapes import Distance, Dtype, Profile
from posenc.guards import floating, widest
from posenc.numerics import slopes as slope_rules
from posenc.positions import checked, floats

SlopeRule = Literal["authors", "geometric"]


class ALiBi(RelativeBias):
    """A penalty that grows with distance, each head with a slope of its own.

    bias(h, q, k) = −m_h · |q − k|,  m_h = 2^(−8h / heads) for h = 1 … heads

    Args:
        slopes: ``"authors"``: the rule of the authors' code for heads that are no power of two.
            ``"geometric"``: the formula for any number. Or the m_h themselves, one a head.
        is_causal: Whether keys after their query have no penalty.
        alibi_bias_max: What replaces the 8 of a rule, as MPT names it.

    Reference:
        Press, Smith & Lewis 2022, "Train Short, Test Long", section 3 (arXiv:2108.12409);
        ``build_mpt_alibi_tensor`` in transformers.

    Example:
        >>> ALiBi(heads=2).profile(torch.tensor([0, 1, 2]))
        tensor([[ 0.0000, -0.0625, -0.1250],
                [ 0.0000, -0.0039, -0.0078]])
    """

    takes_reals = True
    head_axes: ClassVar[Mapping[str, int] | None] = {}

    def __init__(
        self,
        heads: int,
        *,
        slopes: SlopeRule | Sequence[float] = "authors",
        is_causal: bool = False,
        alibi_bias_max: float = 8.0,
    ):
        super().__init__()
        check_whole(heads=heads)
        check_positive_number(alibi_bias_max=alibi_bias_max)
        self.heads, self.is_causal, self.alibi_bias_max = heads, is_causal, alibi_bias_max
        rules = {"authors": slope_rules.alibi, "geometric": slope_rules.geometric}
        if isinstance(slopes, str):
            check_choice(tuple(rules), slopes=slopes)
            self.first_slopes, slopes = slopes, rules[slopes](heads, alibi_bias_max)
        else:
            self.first_slopes = slopes = tuple(map(float, slopes))
        check_numbers(slopes=slopes)
        if len(slopes) != heads:
            raise ValueError(f"slopes are {len(slopes)} numbers for {heads} heads.")
        self.slopes: tuple[float, ...] = slopes

    def profile(self, distance: Distance, *, dtype: Dtype = None) -> Profile:
        distance = checked(distance, "distance", reals=True)
        away = floats(distance, widest(distance.device))
        away = away.clamp(min=0) if self.is_causal else away.abs()
        slopes = torch.tensor(self.slopes, dtype=away.dtype, device=away.device)
        return (slopes.view(-1, *[1] * away.ndim) * (0.0 - away)).to(floating(dtype))

    def take_heads(self, heads: slice) -> None:
        super().take_heads(heads)
        self.first_slopes = self.slopes = self.slopes[heads]
        self.alibi_bias_max = 8.0
