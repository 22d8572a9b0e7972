"""What score encodings share that read content: products, chosen rows, tables of distances."""

from abc import abstractmethod
from math import sqrt

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.shapes import (
    Distances,
    Dtype,
    K,
    Q,
    Scale,
    Scores,
    WholeKeyRow,
    WholeQueryRow,
)
from posenc.positions import checked, checked_distances


class Content:
    """What a call gave as ``q``, ``k`` and by further names, in one dtype."""

    def __init__(self, of: ScoreEncoding, dtype: torch.dtype, scale: Scale, **given: Tensor | None):
        self._of, self._dtype, self._scale, self._given = of, dtype, scale, given

    def __getattr__(self, name: str) -> Tensor:
        if (x := self.get(name)) is None:
            raise ValueError(f"{type(self._of).__name__} was given no {name}, which it reads.")
        return x

    def get(self, name: str) -> Tensor | None:
        """What was given under a name, or nothing."""
        x = self._given.get(name)
        return None if x is None else x.to(self._dtype)

    @property
    def keys(self) -> Float[Tensor, "*batch heads k_len head_dim"]:
        """Keys repeated for the query heads that share them."""
        return grouped_keys(self.k, self._of.heads)

    @property
    def scale(self) -> float:
        """What products of queries and keys were multiplied with; 1/√head_dim by default."""
        either = self.k if self._given["q"] is None else self.q
        return 1 / sqrt(either.shape[-1]) if self._scale is None else self._scale


class OfContent(ScoreEncoding):
    """A score encoding that reads content; a subclass defines ``changed``."""

    @abstractmethod
    def changed(self, scores: Scores, table: Tensor, content: Content) -> Scores:
        """``scores``, which come in float32 at least, changed by position."""

    def encode(
        self,
        scores: Scores,
        table: Tensor,
        *,
        q: Q = None,
        k: K = None,
        scale: Scale = None,
        **read: Float[Tensor, "..."] | None,
    ) -> Scores:
        """``scores`` changed; ``read`` is what else it reads, as ``q_features``."""
        wide = working_dtype(scores.dtype)
        content = Content(self, wide, scale, q=q, k=k, **read)
        return self.changed(scores.to(wide), table, content).to(scores.dtype)


class OfDistance(OfContent):
    """A score encoding whose table is the distance q − k of each pair, in whole numbers."""

    is_relative = True

    def table(
        self, q_positions: WholeQueryRow, k_positions: WholeKeyRow, *, dtype: Dtype = None
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k of every pair, int64 whatever ``dtype`` is."""
        return checked_distances(q_positions, k_positions)


class OfBothPositions(OfContent):
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
