"""Inkling's temperature: scores sharpen with the logarithm of the context, from a floor on."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.content import checked_content
from posenc.guards import floating, widest
from posenc.positions import Integers, checked


class LogTemperature(ScoreEncoding):
    """scores · (1 + alpha · ln(max(1, (p + 1) / floor))), with p the query's position.

    Up to ``floor`` nothing changes. It multiplies what encodings before it have added, too: so
    the code of Inkling multiplies its queries and its relative logits alike.

    Args:
        heads: Number of query heads.
        floor: The length from which on scores grow, ``log_scaling_n_floor`` there.
        alpha: How fast, ``log_scaling_alpha`` there.

    Raises:
        ValueError: ``heads`` or ``floor`` is not a positive whole number.

    Reference:
        The code of Inkling and Inkling 2 in Hugging Face transformers, ``InklingAttention``.

    Example:
        >>> LogTemperature(heads=1, floor=4).table(torch.tensor([3, 7, 15]), torch.tensor([0]))
        tensor([[1.0000],
                [1.0693],
                [1.1386]])
    """

    is_relative = False
    is_pairwise = True

    def __init__(self, heads: int, floor: int = 128_000, alpha: float = 0.1):
        super().__init__()
        check_whole(heads=heads, floor=floor)
        check_number(alpha=alpha)
        self.heads, self.floor, self.alpha = heads, floor, alpha

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
            ValueError: ``floor`` learns, and is below 1 by now.
        """
        q_positions = checked(q_positions, "q_positions").clamp(min=0).unsqueeze(-1)
        k_positions = checked(k_positions, "k_positions")
        wide = widest(q_positions.device)
        seen = q_positions.to(wide) + 1
        factor = 1 + self.alpha * (seen / self.floor).clamp(min=1).log()
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
        checked_content("LogTemperature", self.heads, scores)
        return (scores.to(working_dtype(scores.dtype)) * table.unsqueeze(-3)).to(scores.dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"heads={self.heads}, floor={self.floor}, alpha={self.alpha}"
