"""Which queries and keys meet: where they stand, and what hides one from the other."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool
from torch import Tensor

from posenc._guards import may_look
from posenc.backends.masks import not_later
from posenc.backends.toeplitz import hides
from posenc.positions import consecutive, runs

MOST_PIECES = 4096  # a row; with more, each would be too small to pay for its call


@dataclass(frozen=True)
class Piece:
    """A run of queries and the run of keys that they may see, both one position apart.

    Attributes:
        batch: The rows of the batch for which it holds.
        queries: Where the queries lie in their row.
        keys: Where the keys lie in theirs.
        offset: Position of the first query less that of the first key.
    """

    batch: slice
    queries: slice
    keys: slice
    offset: int

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Number of queries, number of keys, and offset: all that a bias of distance depends on."""
        queries, keys = self.queries, self.keys
        return queries.stop - queries.start, keys.stop - keys.start, self.offset


@dataclass(frozen=True)
class AttentionSpecification:
    """Queries and keys of one call of attention, and who may see whom.

    Attributes:
        batch: Rows of the batch.
        q_len: Number of queries; they are the last of the keys where masks are given.
        k_len: Number of keys.
        q_positions: ``[q_len]``, ``[batch, q_len]`` or a grid; ``None``: the last of 0, 1, 2, ….
        k_positions: Likewise; ``None``: 0, 1, 2, ….
        causal: Whether a later key is hidden.
        by_row: Whether "later" means further along the row, and not a larger position.
        window: How many positions a query sees to each side, its own among them.
        padding_mask: ``[batch, k_len]``, true where a key is real.
        document_ids: ``[batch, k_len]``; runs of equal ids see themselves alone.
        mask: Any other mask, boolean or additive, broadcastable to [batch, heads, q_len, k_len].
        device: Where all of it lies.
    """

    batch: int
    q_len: int
    k_len: int
    q_positions: Tensor | None = None
    k_positions: Tensor | None = None
    causal: bool = False
    by_row: bool = False
    window: int | None = None
    padding_mask: Tensor | None = None
    document_ids: Tensor | None = None
    mask: Tensor | None = None
    device: torch.device | None = None

    @property
    def queries(self) -> Tensor:
        """Where the queries stand."""
        if self.q_positions is None:
            return consecutive(self.q_len, start=self.k_len - self.q_len, device=self.device)
        return self.q_positions

    @property
    def keys(self) -> Tensor:
        """Where the keys stand."""
        return (
            consecutive(self.k_len, device=self.device)
            if self.k_positions is None
            else self.k_positions
        )

    @property
    def hides_nothing_but_order(self) -> bool:
        """Whether no mask, padding, document or window stands in the way."""
        others = (self.mask, self.padding_mask, self.document_ids, self.window)
        return all(one is None for one in others)

    @property
    def hides_padding_alone(self) -> bool:
        """Whether all queries of a row see the same keys."""
        return not self.causal and self.window is None and self.document_ids is None

    def visible(self) -> Bool[Tensor, "#batch 1 #q_len k_len"] | None:
        """The pairs that may meet, less what ``mask`` says; ``None`` where all may.

        Example:
            >>> AttentionSpecification(1, 2, 3, causal=True).visible()[0, 0].int()
            tensor([[1, 1, 0],
                    [1, 1, 1]], dtype=torch.int32)
        """
        seen = None
        if self.causal and self.order_is_that_of_rows:
            order = not_later(self.q_len, self.k_len, device=self.device)
            seen = order[None, None]
        elif self.causal:
            seen = _four(self.distance() >= 0)
        if self.window is not None:
            hidden = hides(self.distance(), causal=False, window=self.window)
            assert hidden is not None
            seen = _both(seen, _four(~hidden))
        if self.padding_mask is not None:
            seen = _both(seen, self.padding_mask[:, None, None, :])
        if self.document_ids is not None:
            ids = runs(self.document_ids)
            queries = ids[:, self.k_len - self.q_len :]
            seen = _both(seen, (queries[:, :, None] == ids[:, None, :])[:, None])
        return seen

    def distance(self) -> Tensor:
        """q_position − k_position of every pair."""
        return self.queries.unsqueeze(-1) - self.keys.unsqueeze(-2)

    @property
    def is_one_piece(self) -> bool:
        """Whether that is known without a look: one run of queries and one of keys, all rows."""
        others = (self.mask, self.padding_mask, self.document_ids)
        return self._both_default and all(one is None for one in others)

    @property
    def order_is_that_of_rows(self) -> bool:
        """Whether "later" means further along the row, for want of positions in one line too."""
        return self.by_row or self._both_default or self.queries.ndim > 2

    @property
    def in_step(self) -> bool:
        """Whether each query has its key in the same place, and order rises along the row."""
        if self.q_len != self.k_len:
            return False
        if self.order_is_that_of_rows:
            return True
        positions = self.q_positions
        if positions is None or positions is not self.k_positions or not may_look(positions):
            return False
        return bool((positions.diff() > 0).all())

    @property
    def one_table(self) -> bool:
        """Whether queries and keys stand at the same positions."""
        return self.q_len == self.k_len and self.q_positions is self.k_positions

    @property
    def sees_all(self) -> bool:
        """Whether there is one query, the last, from which order hides nothing."""
        return self.q_len == 1 and self.order_is_that_of_rows

    @property
    def _both_default(self) -> bool:
        return self.q_positions is None and self.k_positions is None

    def pieces(self) -> tuple[Piece, ...] | str:
        """The specification, taken apart into runs; or the reason why it cannot be.

        What stands in rows of padding means nothing, so no piece need hold them.
        """
        if self.mask is not None:
            return "the mask may be any"
        if self.queries.ndim > 2:
            return "positions are points of a grid"
        tensors = (self.queries, self.keys, self.padding_mask, self.document_ids)
        if any(t is not None and not may_look(t) for t in tensors):
            return "positions and masks cannot be looked at here"
        rows = [self._runs(row) for row in range(1 if self._rows_alike else self.batch)]
        if any(isinstance(row, str) for row in rows):
            return next(row for row in rows if isinstance(row, str))
        return _gathered(rows, self.batch)  # type: ignore[arg-type]

    @property
    def _rows_alike(self) -> bool:
        one = all(t.ndim == 1 or len(t) == 1 for t in (self.queries, self.keys))
        return one and self.padding_mask is None and self.document_ids is None

    def _runs(self, row: int) -> list[tuple[slice, slice, int]] | str:
        """Slices of queries and keys with their offset, for one row of the batch."""
        documents = self._documents(row)
        if isinstance(documents, str):
            return documents
        queries, keys = (_row(t, row) for t in (self.queries, self.keys))
        found = []
        for some, seen in documents:
            if not bool((keys[seen].diff() == 1).all()):
                return "the positions of keys are not one apart"
            for run in _consecutive(queries, some):
                offset = int(queries[run.start] - keys[seen.start])
                if self.causal and self.by_row and offset != self._shift + run.start - seen.start:
                    return "positions and rows are in different orders"
                found.append((run, seen, offset))
        return found if len(found) <= MOST_PIECES else "there are too many pieces"

    def _documents(self, row: int) -> list[tuple[slice, slice]] | str:
        """The queries and the keys of each document of one row, padding left out."""
        if self.document_ids is None and self.padding_mask is None:
            return [(slice(0, self.q_len), slice(0, self.k_len))]
        ids = torch.zeros(self.k_len, dtype=torch.int64)
        if self.document_ids is not None:
            ids = runs(self.document_ids[row]).cpu()
        if self.padding_mask is not None:
            ids = ids.where(self.padding_mask[row].cpu(), -1)
        values, counts = ids.unique_consecutive(return_counts=True)
        ends = counts.cumsum(0)
        found = [
            (label, slice(max(begin - self._shift, 0), end - self._shift), slice(begin, end))
            for label, begin, end in zip(
                values.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True
            )
            if label >= 0
        ]
        if len({label for label, _, _ in found}) < len(found):
            return "padding stands inside a document"
        return [(some, seen) for _, some, seen in found if some.stop > some.start]

    @property
    def _shift(self) -> int:
        return self.k_len - self.q_len


def _consecutive(positions: Tensor, part: slice) -> list[slice]:
    """The runs of positions one apart within ``part``."""
    breaks = (positions[part].diff() != 1).nonzero().flatten() + part.start + 1
    ends = [part.start, *breaks.tolist(), part.stop]
    return [slice(begin, end) for begin, end in pairwise(ends)]


def _gathered(rows: list[list[tuple[slice, slice, int]]], batch: int) -> tuple[Piece, ...]:
    """One piece for neighboring rows of the batch that are alike."""
    if len(rows) == 1:
        return tuple(Piece(slice(0, batch), *run) for run in rows[0])
    pieces, begin = [], 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end] != rows[begin]:
            pieces += [Piece(slice(begin, end), *run) for run in rows[begin]]
            begin = end
    return tuple(pieces)


def _row(positions: Tensor, row: int) -> Tensor:
    return positions if positions.ndim == 1 else positions[row if len(positions) > 1 else 0]


def _four(seen: Tensor) -> Tensor:
    """[*batch, q_len, k_len] → [batch, 1, q_len, k_len]."""
    return seen[None, None] if seen.ndim == 2 else seen[:, None]


def _both(seen: Tensor | None, other: Tensor) -> Tensor:
    return other if seen is None else seen & other
