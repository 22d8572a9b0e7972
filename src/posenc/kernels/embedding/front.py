"""Lookup of token ids, scaled and with a table added, in one pass over memory."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.guards import recorded
from posenc.kernels.addition import reference
from posenc.kernels.addition.front import (
    by_operator,
    draws_elsewhere,
    fits,
    gradient_of_x,
    numbers_of,
    scaled_sum,
)
from posenc.kernels.operators import serve, written


def embedded(
    ids: Int64[Tensor, "*batch seq"],
    weight: Float[Tensor, "vocabulary dim"],
    table: Float[Tensor, "*rows dim"] | None = None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    padding_idx: int | None = None,
    out: Tensor | None = None,
) -> Float[Tensor, "*batch seq dim"]:
    """``dropout(weight[ids] · scale + table)``, rounded once to the dtype of ``weight``.

    Args:
        ids: Which vector each token is.
        weight: One vector an id.
        table: What is added, if anything is; with ``positions``, ``[rows, dim]``.
        positions: Which row of the table each token takes.
        scale: What vectors are multiplied with first.
        dropout: Probability of dropping an element of the sum; see ``kernels.addition``.
        padding_idx: The id whose vector gets no gradient; from the end if it is negative.
        out: Where to write the result.

    Example:
        >>> weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> embedded(torch.tensor([1, 0]), weight, torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
        tensor([[3.5000, 4.5000],
                [1.0000, 2.0000]])
    """
    if dropout and draws_elsewhere(dropout, weight, table):
        vectors = F.embedding(ids, weight, padding_idx=padding_idx)
        return scaled_sum(vectors, table, positions, scale=scale, dropout=dropout, out=out)
    numbers, learns = numbers_of(scale, dropout), recorded(weight, table)
    if (
        not serve(weight, ids)
        or not fits(table, weight)
        or not 1 <= ids.ndim <= 3
        or ids.dtype is not torch.int64
        or (learns and (out is not None or (table is not None and table.requires_grad)))
    ):
        vectors = F.embedding(ids, weight, padding_idx=padding_idx)
        return written(reference.scaled_sum(vectors, table, positions, *numbers), out)
    if learns:
        padding = -1 if padding_idx is None else padding_idx % len(weight)
        return _Embedded.apply(ids, weight, table, positions, numbers, padding)
    return by_operator((weight, ids), table, positions, numbers, out)


class _Embedded(torch.autograd.Function):
    """``embedded`` for vectors that learn; nothing is kept but ids."""

    @staticmethod
    def forward(ctx, ids, weight, table, positions, numbers, padding):
        ctx.save_for_backward(ids)
        ctx.given = numbers, weight.shape[0], padding
        return by_operator((weight, ids), table, positions, numbers)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        (ids,) = ctx.saved_tensors
        numbers, vocabulary, padding = ctx.given
        # The gradient of a lookup is torch's own: sums of rows, in torch's order.
        rows = gradient_of_x(gradient, numbers)
        summed = torch.ops.aten.embedding_dense_backward
        return None, summed(rows, ids, vocabulary, padding, False), None, None, None, None
