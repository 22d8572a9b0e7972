"""Llama 4's query temperature: attention sharpens slowly as the context grows."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.arguments import check_number, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotation import checked_heads
from posenc.numerics.rounding import rounded
from posenc.positions import Integers, checked


class QueryTemperature(QueryKeyEncoding):
    """q · (1 + scale · ln(1 + ⌊(p + 1) / period⌋)); keys stay as they are.

    Llama 4 has it in the layers that have no rotary encoding. It composes with any other encoding
    of queries and keys. Positions below 0 count as 0. The quotient is taken in integers.

    Args:
        head_dim: Width of a head.
        scale: 0.1 in Llama 4.
        period: Number of positions between two steps; 8192 in Llama 4.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.

    Raises:
        ValueError: ``period`` is not a positive whole number.

    Reference:
        Nakanishi 2025, "Scalable-Softmax Is Superior for Attention" (arXiv:2501.19399); the formula
        stands in the code of Llama 4 (``attn_temperature_tuning``).

    Example:
        >>> QueryTemperature(64).table(torch.tensor([0, 8190, 8191]))
        tensor([[1.0000],
                [1.0000],
                [1.0693]])
    """

    is_relative = False

    def __init__(
        self,
        head_dim: int,
        scale: float = 0.1,
        period: int = 8192,
        *,
        heads_first: bool = True,
    ):
        super().__init__()
        check_whole(head_dim=head_dim, period=period)
        check_number(scale=scale)
        self.head_dim, self.scale, self.period = head_dim, scale, period
        self.heads_first = heads_first

    def table(
        self, positions: Int64[Tensor, "*batch seq"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*batch seq 1"]:
        """The factor of each position, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
        """
        positions = checked(positions).clamp(min=0)
        # ⌊(p + 1) / period⌋, without a sum that may leave int64.
        steps = positions // self.period + (positions % self.period == self.period - 1)
        if steps.device.type == "mps":  # has no float64
            return (1 + self.scale * steps.float().log1p()).unsqueeze(-1).to(dtype or torch.float32)
        factor = 1 + self.scale * steps.double().log1p()
        return rounded(factor, dtype or torch.float32).unsqueeze(-1)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 1"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` times its factor, in float32 at least and rounded once."""
        self._check(q, table)
        factor = table.unsqueeze(-3 if self.heads_first else -2)
        return (q.to(working_dtype(q.dtype)) * factor).to(q.dtype)

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 1"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` as it is."""
        self._check(k, table)
        return k

    def _check(self, x: Tensor, table: Tensor) -> None:
        checked_heads(
            x,
            table.shape[-2],
            name="QueryTemperature",
            head_dim=self.head_dim,
            heads_first=self.heads_first,
        )

    def extra_repr(self) -> str:
        """Width, scale and period."""
        return f"{self.head_dim}, scale={self.scale}, period={self.period}"
