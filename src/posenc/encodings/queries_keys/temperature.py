"""Query temperatures: attention sharpens slowly as the context grows."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import check_choice, check_number, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotation import check_rows
from posenc.encodings.shapes import Dtype, Heads, WholeRow
from posenc.guards import floating, widest
from posenc.positions import checked

Form = Literal["llama4", "mistral", "beam"]


class QueryTemperature(QueryKeyEncoding):
    """q times a factor that grows with its position; keys stay as they are.

    ``"llama4"``   1 + scale · ln(1 + ⌊(p + 1) / period⌋)
    ``"mistral"``  1 + scale · ln(1 + ⌊p / period⌋)
    ``"beam"``     (1 + (p + 1) / period)^scale

    Llama 4 and Beam have it in the layers without a rotary encoding, Ministral 3 and Mistral 4 in
    all. Positions below 0 count as 0. For Inkling's see ``LogTemperature``.

    Args:
        scale: 0.1 in all of these models.
        period: Positions between two steps: 8192 in Llama 4, the trained length in Ministral 3 and
            Mistral 4, 2048 in Beam, whose factor has no steps.
        form: The formula, by the model.

    Reference:
        Nakanishi 2025, "Scalable-Softmax Is Superior for Attention" (arXiv:2501.19399); in
        transformers ``attn_temperature_tuning`` of Llama 4, ``get_llama_4_attn_scale`` of Ministral
        3, ``compute_attention_scaling`` of Beam.

    Example:
        >>> QueryTemperature(64).table(torch.tensor([0, 8190, 8191])).flatten()
        tensor([1.0000, 1.0000, 1.0693])
    """

    keeps_neighbors_apart = False  # the temperature grows by steps

    def __init__(
        self,
        head_dim: int,
        scale: float = 0.1,
        period: int = 8192,
        *,
        form: Form = "llama4",
        heads_first: bool = True,
    ):
        super().__init__()
        check_whole(head_dim=head_dim, period=period)
        check_number(scale=scale)
        check_choice(get_args(Form), form=form)
        self.head_dim, self.scale, self.period = head_dim, scale, period
        self.form, self.heads_first = form, heads_first

    def table(self, positions: WholeRow, *, dtype: Dtype = None) -> Float[Tensor, "*batch seq 1"]:
        positions = checked(positions).clamp(min=0)
        wide = widest(positions.device)
        if self.form == "beam":
            factor = (self.scale * ((positions.to(wide) + 1) / self.period).log1p()).exp()
        else:
            factor = 1 + self.scale * self._steps(positions, wide).log1p()
        return rounded(factor, floating(dtype)).unsqueeze(-1)

    def _steps(self, positions: Tensor, wide: torch.dtype) -> Tensor:
        """⌊(p + 1) / period⌋, or ⌊p / period⌋, without a sum that may leave int64."""
        whole = (positions // self.period).to(wide)
        if self.form == "mistral":
            return whole
        return whole + (positions % self.period == self.period - 1)

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 1"]) -> Heads:
        check_rows(q, table, (1,), self.heads_first)
        factor = table.unsqueeze(-3 if self.heads_first else -2)
        return (q.to(working_dtype(q.dtype)) * factor).to(q.dtype)

    def encode_keys(self, k: Heads, table: Float[Tensor, "*rows 1"]) -> Heads:
        return k


def check_unrotated(
    self: object, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
) -> None:
    """Refuse encodings beside one that rotates queries and keys itself; temperatures only scale."""
    for each in queries_keys:
        if not isinstance(each, QueryTemperature):
            own, other = type(self).__name__, type(each).__name__
            raise ValueError(f"{own} rotates queries and keys; {other} would change them before.")
