"""What encodings of scores share that read content, or the tokens between a key and its query.

They know documents and padding by positions: where positions fall a document begins, and a token at
the position of the one before it is padding (``posenc.positions.left_padded``).
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from math import sqrt

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.arguments import check_whole
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
from posenc.guards import may_look, widest
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


def steps_of_keys(distance: Distances) -> Int64[Tensor, "*rows steps"]:
    """From each key to the next, how far positions go."""
    step = distance[..., :1, :-1] - distance[..., :1, 1:]
    return step.sum(-2)  # over one query, or over none


def sums_after_key(
    values: Float[Tensor, "*batch #heads #q_len k_len"], distance: Distances
) -> Float[Tensor, "*batch #heads q_len k_len"]:
    """Σ values[i, l] over tokens l of a document after key j and up to query i, in float64."""
    step = steps_of_keys(distance).unsqueeze(-2)
    # The first token of a document comes after none of it.
    rises = F.pad(step > 0, (1, 0), value=False)
    counted = (rises & (distance >= 0)).unsqueeze(-3)
    wide = torch.promote_types(values.dtype, widest(values.device))
    counted_values = torch.where(counted, values, 0).to(wide)
    after = counted_values.flip(-1).cumsum(-1).flip(-1) - counted_values
    last = _last_of_document(step < 0).unsqueeze(-3).expand(after.shape)
    return (after - after.gather(-1, last)).to(values.dtype)


def _last_of_document(falls: Bool[Tensor, "*rows steps"]) -> Int64[Tensor, "*rows k_len"]:
    """For each key the index of the last key of its document."""
    ends = F.pad(falls, (0, 1), value=True)
    index = torch.arange(ends.shape[-1], device=ends.device)
    at_ends = torch.where(ends, index, ends.shape[-1])
    return at_ends.flip(-1).cummin(-1).values.flip(-1)


def trained_rows(row_of: Callable[[Tensor], Tensor], length: int | None) -> frozenset[int] | None:
    """The rows of all distances in a sequence of ``length`` tokens; ``None`` without a length."""
    if length is None:
        return None
    check_whole(trained_length=length)
    return frozenset(row_of(torch.arange(1 - length, length, device="cpu")).unique().tolist())


def warn_untrained(rows: Tensor, trained: frozenset[int] | None, length: int | None) -> None:
    """Tell of rows that were not trained, in the same words each time: Python shows them once."""
    if trained is None or not may_look(rows) or trained.issuperset(rows.unique().tolist()):
        return
    told = f"A distance has a bucket that no sequence of trained_length {length} reaches."
    warnings.warn(told, stacklevel=3)
