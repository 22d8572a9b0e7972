"""A temperature of the scores, constant or growing with the logarithm of the context."""

from math import log

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.guards import floating, widest
from posenc.positions import Integers, checked


class Temperature(ScoreEncoding):
    """scores · scale · max(1, ln(p + 1) / ln(trained_length)), with p the query's position.

    With a trained length it is log-n scaling: a query at p sees p + 1 keys, and softmax stays as
    sharp over them as it was over the trained ones. Up to the trained length nothing changes.
    Without one it is a constant, such as (0.1 · mscale · ln s + 1)² of DeepSeek's YaRN. An encoder
    whose queries all see n keys takes ``scale=log(n) / log(trained_length)``, or ``log(n)`` for the
    form of Chiang & Cholak. It multiplies what encodings before it have added, too.

    Args:
        heads: Number of query heads.
        trained_length: The length from which on scores grow; ``None`` for a constant.
        scale: A constant factor.

    Raises:
        ValueError: ``heads`` is not positive, or ``trained_length`` less than 2.

    Reference:
        Chiang & Cholak 2022, "Overcoming a Theoretical Limitation of Self-Attention"
        (arXiv:2202.12172); the clipped form with the position of the query stands in the code of
        Qwen (``use_logn_attn``) and of ReRoPE.

    Example:
        >>> Temperature(heads=1, trained_length=4).table(torch.tensor([3, 15]), torch.tensor([0]))
        tensor([[1.],
                [2.]])
    """

    def __init__(self, heads: int, trained_length: int | None = None, *, scale: float = 1.0):
        super().__init__()
        check_whole(heads=heads)
        check_number(scale=scale)
        if trained_length is not None:
            check_whole(2, trained_length=trained_length)  # its logarithm divides
        self.heads, self.trained_length, self.scale = heads, trained_length, scale
        self.is_relative = trained_length is None
        self.is_pairwise = True

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch q_len k_len"]:
        """The factor of each query, the same for all keys; float32 unless another dtype is asked.

        Raises:
            TypeError: Positions are not integers.
        """
        q_positions = checked(q_positions, "q_positions")
        k_positions = checked(k_positions, "k_positions")
        last = q_positions.clamp(min=0).unsqueeze(-1)
        wide = widest(last.device)
        factor = self.scale * torch.ones_like(last, dtype=wide)
        if self.trained_length is not None:
            seen = last.to(wide) + 1
            factor = self.scale * (seen.log() / log(self.trained_length)).clamp(min=1)
        factor = rounded(factor, floating(dtype))
        return factor.expand(*factor.shape[:-1], k_positions.shape[-1])

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Float[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` times their factor, in float32 at least and rounded once."""
        if scores.shape[-3] != self.heads:
            raise ValueError(
                f"Temperature was built for {self.heads} heads; scores have {scores.shape[-3]}. "
                f"Build it with heads={scores.shape[-3]}."
            )
        return (scores.to(working_dtype(scores.dtype)) * table.unsqueeze(-3)).to(scores.dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"heads={self.heads}, trained_length={self.trained_length}, scale={self.scale}"
