"""Attention with linear biases."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_positive_number
from posenc.encodings.bias import RelativeBias
from posenc.guards import floating, widest
from posenc.numerics import slopes as slope_rules
from posenc.positions import Positions, checked, float_distances, floats

SlopeRule = Literal["authors", "geometric"]


class ALiBi(RelativeBias):
    """A penalty that grows with distance, each head with a slope of its own.

    bias(h, q, k) = −m_h · |q − k|,  m_h = 2^(−8h / heads) for h = 1 … heads

    The bias comes from the relative distance, never as slope × absolute position: it stays exact
    at any position, and 16-bit content cannot coarsen it.

    Args:
        heads: Number of query heads.
        slopes: ``"authors"``: the recipe of the authors' code for heads that are no power of two.
            ``"geometric"``: the formula above for any number. Or the m_h themselves, one a head.
        is_causal: A key after its query (which a causal mask hides) is not penalized. The bias of
            the keys before it is the same either way.
        alibi_bias_max: What stands in place of 8 in the exponent, as MPT names it.

    Raises:
        ValueError: ``heads`` is not positive, ``slopes`` has no such name or not one number a head,
            or ``alibi_bias_max`` is not positive, or stands beside slopes of your own.

    Reference:
        Press, Smith & Lewis 2022, "Train Short, Test Long", section 3 (arXiv:2108.12409);
        ``alibi_bias_max`` as in the code of MPT (``build_mpt_alibi_tensor`` in transformers).

    Example:
        >>> ALiBi(heads=2).profile(torch.tensor([0, 1, 2]))
        tensor([[ 0.0000, -0.0625, -0.1250],
                [ 0.0000, -0.0039, -0.0078]])
        >>> ALiBi(heads=2, slopes=(0.5, 0.25)).profile([0, 1, 2])
        tensor([[ 0.0000, -0.5000, -1.0000],
                [ 0.0000, -0.2500, -0.5000]])
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
        self.heads, self.is_causal, self.alibi_bias_max = heads, is_causal, alibi_bias_max
        self.rule, self.slopes = _slopes(heads, slopes, alibi_bias_max)

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """−m_h · |distance|, float32 unless another dtype is asked for."""
        distance = checked(distance, "distance", reals=True)
        return self._at(floats(distance, widest(distance.device)), dtype)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Positions,
        k_positions: Int64[Tensor, "*batch k_len"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``profile`` at every pair of positions.

        Raises:
            TypeError: Positions are neither integers nor coordinates.
            ValueError: Two of them are 2^63 or more apart.
        """
        q_positions = checked(q_positions, "q_positions", reals=True)
        away = float_distances(q_positions, k_positions, widest(q_positions.device))
        return self._at(away, dtype).movedim(0, -3)

    def _at(
        self, away: Float[Tensor, "*shape"], dtype: torch.dtype | None
    ) -> Float[Tensor, "heads *shape"]:
        away = away.clamp(min=0) if self.is_causal else away.abs()
        slopes = torch.tensor(self.slopes, dtype=away.dtype, device=away.device)
        slopes = slopes.view(-1, *[1] * away.ndim)
        return (slopes * (0.0 - away)).to(floating(dtype))

    def take_heads(self, heads: slice) -> None:
        """Forget the slopes of other heads."""
        super().take_heads(heads)
        self.rule, self.slopes, self.alibi_bias_max = None, self.slopes[heads], 8.0

    def extra_repr(self) -> str:
        """The arguments."""
        told = [f"heads={self.heads}"]
        if self.rule != "authors":
            told.append(f"slopes={self.slopes if self.rule is None else repr(self.rule)}")
        if self.is_causal:
            told.append("is_causal=True")
        if self.alibi_bias_max != 8.0:
            told.append(f"alibi_bias_max={self.alibi_bias_max}")
        return ", ".join(told)


def _slopes(
    heads: int, given: SlopeRule | Sequence[float], most: float
) -> tuple[SlopeRule | None, tuple[float, ...]]:
    """The rule by its name, or None for slopes of the caller's own, and the slopes."""
    check_positive_number(alibi_bias_max=most)
    authors = slope_rules.alibi(heads, most)
    if isinstance(given, str):
        if given not in get_args(SlopeRule):
            raise ValueError(
                f"slopes is {given!r}; it must be one of {get_args(SlopeRule)}, or one number a "
                f"head."
            )
        return given, authors if given == "authors" else slope_rules.geometric(heads, most)
    try:
        own = tuple(float(slope) for slope in given)
    except (TypeError, ValueError):
        own = ()
    if len(own) != heads or not all(isfinite(slope) for slope in own):
        raise ValueError(
            f"slopes are {given!r}; give {heads} finite numbers, one a head, or the name of a rule."
        )
    if most != 8.0:
        raise ValueError(
            f"alibi_bias_max is {most} beside slopes of your own, which it would not change. Give "
            f"one of the two."
        )
    return None, own
