"""Lookup of token ids, scaled and with a table added, in one pass over memory."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.guards import captured, kernels_reach, recorded
from posenc.kernels.addition.operator import by_kernel, gradient_of_x, scaled_sum
from posenc.kernels.embedding import reference
from posenc.kernels.out import check_memory, written
from posenc.kernels.philox import Dropping, check_probability, drawn


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
        padding_idx: The id whose vector gets no gradient.
        out: Where to write the result.

    Raises:
        IndexError: An id is not a row of ``weight``, or a position not one of the table.
        ValueError: The table is of more tokens than ids, positions come without a table,
            ``dropout`` is no probability, ``padding_idx`` no id; ``out`` has another shape or
            dtype than the result, or elements that share a
            place, or shares memory with an operand; or an operand has no memory.

    Example:
        >>> weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> embedded(torch.tensor([1, 0]), weight, torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
        tensor([[3.5000, 4.5000],
                [1.0000, 2.0000]])
    """
    if dropout:
        check_probability(dropout)
    padding_idx = checked_padding(padding_idx, len(weight))
    theirs = dropout == 1.0 or (dropout and captured(weight))
    if theirs or not kernels_reach(ids, weight, table, positions, out):
        check_memory(ids=ids, weight=weight, table=table, positions=positions)
        vectors = F.embedding(ids, weight, padding_idx=padding_idx)
        made = scaled_sum(vectors, table, positions, scale=scale, dropout=dropout)
        return written(made, out, ids=ids, weight=weight, table=table, positions=positions)
    dropping = drawn(dropout)
    given = (ids, weight, table, positions, scale, dropping, padding_idx)
    if not recorded(weight, table, out):
        return _embedded(*given, out)
    if out is None and not (table is not None and table.requires_grad):
        return _Embedded.apply(*given)
    return _by_reference(*given, out)


def checked_padding(padding_idx: int | None, vocabulary: int) -> int | None:
    """The id of padding, from the end if it is negative, as torch has it.

    Raises:
        ValueError: It is no id.

    Example:
        >>> checked_padding(-1, 6), checked_padding(None, 6)
        (5, None)
    """
    if padding_idx is None:
        return None
    if isinstance(padding_idx, bool) or not -vocabulary <= padding_idx < vocabulary:
        raise ValueError(
            f"padding_idx is {padding_idx!r}; it must be an id of a vocabulary of {vocabulary}, "
            f"0 … {vocabulary - 1}, or None."
        )
    return padding_idx % vocabulary


class _Embedded(torch.autograd.Function):
    """``embedded`` for vectors that learn; nothing is kept but ids."""

    @staticmethod
    def forward(ctx, ids, weight, table, positions, scale, dropping, padding_idx):
        ctx.save_for_backward(ids)
        ctx.given = scale, dropping, weight.shape[0], padding_idx
        return _embedded(ids, weight, table, positions, scale, dropping, padding_idx)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        (ids,) = ctx.saved_tensors
        scale, dropping, vocabulary, padding_idx = ctx.given
        # The gradient of a lookup is torch's own: sums of rows, in torch's order.
        rows = gradient_of_x(gradient, scale, dropping)
        padding = -1 if padding_idx is None else padding_idx
        summed = torch.ops.aten.embedding_dense_backward
        of_weight = summed(rows, ids, vocabulary, padding, False)
        return None, of_weight, None, None, None, None, None


def _embedded(
    ids: Tensor,
    weight: Tensor,
    table: Tensor | None,
    positions: Tensor | None,
    scale: float | None,
    dropping: Dropping | None,
    padding_idx: int | None,
    out: Tensor | None = None,
) -> Tensor:
    made = by_kernel(
        weight, table, ids=ids, positions=positions, scale=scale, dropping=dropping, out=out
    )
    if made is not None:
        return made
    return _by_reference(ids, weight, table, positions, scale, dropping, padding_idx, out)


def _by_reference(
    ids: Tensor,
    weight: Tensor,
    table: Tensor | None,
    positions: Tensor | None,
    scale: float | None,
    dropping: Dropping | None,
    padding_idx: int | None,
    out: Tensor | None,
) -> Tensor:
    check_memory(ids=ids, weight=weight, table=table, positions=positions)
    return reference.embedded(
        ids, weight, table, positions, scale=scale, dropping=dropping,
        padding_idx=padding_idx, out=out,
    )  # fmt: skip
