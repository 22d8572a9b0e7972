"""The meaning of an embedding with a sum, in plain tensor operations."""

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.kernels.addition.reference import scaled_sum
from posenc.kernels.out import written
from posenc.kernels.philox import Dropping


def embedded(
    ids: Int64[Tensor, "*batch seq"],
    weight: Float[Tensor, "vocabulary dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropping: Dropping | None = None,
    padding_idx: int | None = None,
    out: Tensor | None = None,
) -> Float[Tensor, "*batch seq dim"]:
    """``scaled_sum`` of the rows of ``weight`` that ``ids`` name.

    Raises:
        IndexError: An id is not a row of ``weight``, or a position not one of the table.
        ValueError: ``out`` has another shape or dtype than the result, or elements that share a
            place, or shares memory with an operand.

    Example:
        >>> import torch
        >>> embedded(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]), torch.zeros(1), scale=10.0)
        tensor([[20.],
                [10.]])
    """
    vectors = F.embedding(ids, weight, padding_idx=padding_idx)
    made = scaled_sum(vectors, table, positions, scale=scale, dropping=dropping)
    return written(made, out, ids=ids, weight=weight, table=table, positions=positions)
