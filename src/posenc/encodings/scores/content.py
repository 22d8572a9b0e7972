"""What score encodings share that read content: products, chosen rows, tables of distances."""

from math import sqrt

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import ScoreEncoding
from posenc.encodings.shapes import Distances, Dtype, Scale, Scores, WholeKeyRow, WholeQueryRow
from posenc.positions import checked, checked_distances


class OfDistance(ScoreEncoding):
    """A score encoding whose table is the distance q − k of each pair, in whole numbers."""

    is_relative = True

    def table(
        self, q_positions: WholeQueryRow, k_positions: WholeKeyRow, *, dtype: Dtype = None
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k of every pair, int64 whatever ``dtype`` is."""
        return checked_distances(q_positions, k_positions)


class OfBothPositions(ScoreEncoding):
    """A score encoding whose table is the position of the query and of the key of each pair."""

    def table(
        self, q_positions: WholeQueryRow, k_positions: WholeKeyRow, *, dtype: Dtype = None
    ) -> Int64[Tensor, "*batch 2 q_len k_len"]:
        """Both positions of every pair, int64 whatever ``dtype`` is."""
        queries, keys = checked(q_positions, "q_positions"), checked(k_positions, "k_positions")
        return torch.stack(torch.broadcast_tensors(queries[..., None], keys[..., None, :]), dim=-3)


def of_each(
    table: Int64[Tensor, "*batch 2 q_len k_len"],
) -> tuple[Int64[Tensor, "*batch q_len"], Int64[Tensor, "*batch k_len"]]:
    """The positions of the queries and those of the keys, from a table of both."""
    # A sum over one entry, or over none where there are no keys or no queries.
    return table[..., 0, :, :1].sum(-1), table[..., 1, :1, :].sum(-2)


def given(encoding: ScoreEncoding, **content: Tensor | None) -> Tensor:
    """The content that ``encoding`` reads, under the name by which ``encode`` takes it."""
    [(name, x)] = content.items()
    if x is None:
        raise ValueError(f"{type(encoding).__name__} was given no {name}, which it reads.")
    return x


def scale_of(scale: Scale, head_dim: int) -> float:
    """What products of queries and keys were multiplied with: ``scale``, or 1/√head_dim."""
    return 1 / sqrt(head_dim) if scale is None else scale


def picked(products: Float[Tensor, "*batch heads q_len rows"], index: Distances) -> Scores:
    """``products[…, q, index[q, k]]``, the index the same for all heads."""
    batch = torch.broadcast_shapes(products.shape[:-3], index.shape[:-2])
    shape = (*batch, *products.shape[-3:-1])
    index = index.unsqueeze(-3).expand(*shape, index.shape[-1])
    return products.expand(*shape, products.shape[-1]).gather(-1, index)


def grouped_keys(
    k: Float[Tensor, "*batch kv_heads k_len head_dim"], heads: int
) -> Float[Tensor, "*batch heads k_len head_dim"]:
    """Keys repeated for the query heads that share them."""
    return k.repeat_interleave(heads // k.shape[-3], dim=-3)
