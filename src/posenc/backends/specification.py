"""The attention specification: where queries and keys stand, and what hides one from the other."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from posenc.backends.masks import not_later
from posenc.backends.segments import Segment, consecutive_runs, segments_of
from posenc.backends.toeplitz import hides
from posenc.guards import may_look
from posenc.positions import Coordinates, consecutive
from posenc.positions.distances import pair_distances

LAYOUT = "[batch, heads, seq, head_dim]"  # of queries, keys and values


@dataclass(frozen=True, eq=False)
class AttentionSpecification:
    """Queries and keys of one call of attention, and who may see whom.

    Nothing is assumed of queries: what describes them stands beside what describes keys.

    Attributes:
        batch: Rows of the batch.
        q_len: Number of queries.
        k_len: Number of keys.
        q_positions: ``[q_len]``, ``[#batch, q_len]`` or a grid ``[#batch, q_len, axes]``; ``None``:
            the last of 0, 1, 2, …. Coordinates have the scale of those of the keys.
        k_positions: Likewise; ``None``: 0, 1, 2, ….
        q_remapped: Where encodings take the queries to stand, if elsewhere; order and windows stay
            with ``q_positions``.
        k_remapped: Likewise for keys, or those where padding counts for nothing.
        is_causal: Whether a later key is hidden.
        by_row: Whether "later" means further along the row, and not a larger position.
        first_row: The place in the row of keys that the first query has; if not given, the queries
            are the last. A tensor of one element where a graph must not depend on it.
        q_rows: ``[q_len]`` or ``[#batch, q_len]``: the place of each query in a row of which these
            are a part, by which "later" goes then; given with ``k_rows``.
        k_rows: Likewise for keys.
        window: How many positions a query sees to each side, its own among them.
        padding_mask: ``[batch, k_len]``, true where a key is real.
        q_padding_mask: ``[batch, q_len]``, true where a query is real; what stands in the rows of
            others means nothing.
        documents: ``[batch, k_len]``: keys with equal numbers are one document.
        q_documents: ``[batch, q_len]``: the document of each query; given if ``documents`` are.
        attn_mask: Any other mask, boolean or additive, four axes, broadcastable to
            ``[batch, heads, q_len, k_len]``.
        sinks: ``[heads]``: a score that takes its share of each row's weight and gives no value.
        softcap: c in c · tanh(score / c), before biases are added.
        device: Where all of it lies.
    """

    batch: int
    q_len: int
    k_len: int
    q_positions: Tensor | Coordinates | None = None
    k_positions: Tensor | Coordinates | None = None
    q_remapped: Tensor | Coordinates | None = None
    k_remapped: Tensor | Coordinates | None = None
    is_causal: bool = False
    by_row: bool = False
    first_row: int | Tensor | None = None
    q_rows: Tensor | None = None
    k_rows: Tensor | None = None
    window: int | None = None
    padding_mask: Tensor | None = None
    q_padding_mask: Tensor | None = None
    documents: Tensor | None = None
    q_documents: Tensor | None = None
    attn_mask: Tensor | None = None
    sinks: Tensor | None = None
    softcap: float | None = None
    device: torch.device | None = None

    @property
    def order(self) -> str:
        """What hides keys and bends scores wherever they stand, as ranks ask each other.

        Example:
            >>> AttentionSpecification(1, 4, 4, is_causal=True).order
            'is_causal=True, window=None, softcap=None, without sinks'
        """
        sinks = "without sinks" if self.sinks is None else "with sinks"
        return f"is_causal={self.is_causal}, window={self.window}, softcap={self.softcap}, {sinks}"

    def within(self, window: int | None) -> "AttentionSpecification":
        """The same with another window."""
        return self if window == self.window else replace(self, window=window)

    def placed(self) -> "AttentionSpecification":
        """The same with every place written out, so that a part can be taken; no ``attn_mask``."""
        told = self.q_rows is not None or not self.order_is_that_of_rows
        q_rows, k_rows = self.q_rows, self.k_rows
        if not told:
            first = self.k_len - self.q_len if self.first_row is None else self.first_row
            q_rows = consecutive(self.q_len, device=self.device) + first
            k_rows = consecutive(self.k_len, device=self.device)
        return replace(
            self,
            q_positions=self.query_places if self.q_positions is None else self.q_positions,
            k_positions=self.key_places if self.k_positions is None else self.k_positions,
            first_row=None,
            q_rows=q_rows,
            k_rows=k_rows,
            attn_mask=None,
        )

    def of_queries(self, part: slice) -> "AttentionSpecification":
        """The same for some of the queries, without ``attn_mask``.

        Example:
            >>> AttentionSpecification(1, 4, 4, is_causal=True).of_queries(slice(1, 2)).visible()
            tensor([[[[ True,  True, False, False]]]])
        """
        whole = self.placed()
        return replace(
            whole,
            q_len=len(range(self.q_len)[part]),
            q_positions=_of(whole.q_positions, part),
            q_remapped=_of(self.q_remapped, part),
            q_rows=_of(whole.q_rows, part),
            q_padding_mask=_of(self.q_padding_mask, part),
            q_documents=_of(self.q_documents, part),
        )

    def of_keys(self, part: slice) -> "AttentionSpecification":
        """The same for some of the keys, without ``attn_mask``.

        Example:
            >>> AttentionSpecification(1, 4, 4, is_causal=True).of_keys(slice(2, 4)).visible().int()
            tensor([[[[0, 0],
                      [0, 0],
                      [1, 0],
                      [1, 1]]]], dtype=torch.int32)
        """
        whole = self.placed()
        return replace(
            whole,
            k_len=len(range(self.k_len)[part]),
            k_positions=_of(whole.k_positions, part),
            k_remapped=_of(self.k_remapped, part),
            k_rows=_of(whole.k_rows, part),
            padding_mask=_of(self.padding_mask, part),
            documents=_of(self.documents, part),
        )

    def runs_of_keys(self) -> list[slice] | str:
        """The runs of keys one position apart, in all rows of the batch; or why none are known."""
        if isinstance(self.keys, Coordinates) or self.keys.ndim > 2:
            return "positions are no numbers in one line"
        if not may_look(self.keys):
            return "positions cannot be looked at here"
        rows = self.keys if self.keys.ndim > 1 else self.keys.unsqueeze(0)
        ends = {run.stop for row in rows for run in consecutive_runs(row, slice(0, self.k_len))}
        return [slice(begin, end) for begin, end in pairwise(sorted({0, *ends}))]

    @property
    def is_empty(self) -> bool:
        """Whether there is no pair of a query and a key at all, known without a look."""
        # In a graph a length may be a symbol, which stands for 2 or more.
        sizes = (self.batch, self.q_len, self.k_len)
        return any(isinstance(size, int) and size == 0 for size in sizes)

    # Where tokens stand ---------------------------------------------------------------------------

    @property
    def query_places(self) -> Tensor:
        """Where the queries stand, by which order goes; coordinates in steps of their scale."""
        if self.q_positions is not None:
            return _steps(self.q_positions)
        return consecutive(self.q_len, start=self.k_len - self.q_len, device=self.device)

    @property
    def key_places(self) -> Tensor:
        """Where the keys stand, likewise."""
        if self.k_positions is not None:
            return _steps(self.k_positions)
        return consecutive(self.k_len, device=self.device)

    @property
    def queries(self) -> Tensor | Coordinates:
        """Where encodings take the queries to stand."""
        if self.q_remapped is not None:
            return self.q_remapped
        return self.query_places if self.q_positions is None else self.q_positions

    @property
    def keys(self) -> Tensor | Coordinates:
        """Where encodings take the keys to stand."""
        if self.k_remapped is not None:
            return self.k_remapped
        return self.key_places if self.k_positions is None else self.k_positions

    @property
    def reach(self) -> int | None:
        """The window in steps of ``query_places`` and ``key_places``."""
        if self.window is None or not isinstance(self.q_positions, Coordinates):
            return self.window
        return self.q_positions.window(self.window)

    @property
    def one_table(self) -> bool:
        """Whether queries and keys stand at the same positions."""
        return self.q_len == self.k_len and (
            self.queries is self.keys or (self._unplaced and self.q_remapped is None)
        )

    # What hides a key -----------------------------------------------------------------------------

    def visible(self) -> Bool[Tensor, "#batch 1 #q_len k_len"] | None:
        """The pairs that may meet, less what ``attn_mask`` says; ``None`` where all may.

        Example:
            >>> AttentionSpecification(1, 2, 3, is_causal=True).visible()[0, 0].int()
            tensor([[1, 1, 0],
                    [1, 1, 1]], dtype=torch.int32)
        """
        seen = None
        if self.is_causal:
            seen = self._not_later()
        if self.window is not None:
            seen = _both(seen, _four(self.within_window()))
        if self.padding_mask is not None:
            seen = _both(seen, self.padding_mask[:, None, None, :])
        if self.documents is not None:
            assert self.q_documents is not None
            same = self.q_documents[:, :, None] == self.documents[:, None, :]
            seen = _both(seen, same[:, None])
        return seen

    def within_window(self) -> Bool[Tensor, "*batch q_len k_len"]:
        """The pairs that are near enough for the window."""
        hidden = hides(self.distance(), is_causal=False, window=self.reach)
        assert hidden is not None
        return ~hidden

    def _not_later(self) -> Tensor:
        if self.q_rows is not None and self.k_rows is not None:
            return _four(self.q_rows.unsqueeze(-1) >= self.k_rows.unsqueeze(-2))
        if self.order_is_that_of_rows:
            rows = not_later(self.q_len, self.k_len, first=self.first_row, device=self.device)
            return rows[None, None]
        return _four(self.query_places.unsqueeze(-1) >= self.key_places.unsqueeze(-2))

    def distance(self) -> Tensor:
        """q_position − k_position of every pair, in the positions that order goes by."""
        return pair_distances(self.query_places, self.key_places)

    @property
    def hides_nothing_but_order(self) -> bool:
        """Whether no mask, padding, document or window stands in the way."""
        others = (self.attn_mask, self.padding_mask, self.documents, self.window)
        return all(one is None for one in others)

    @property
    def hides_padding_alone(self) -> bool:
        """Whether all queries of a row see the same keys."""
        return not self.is_causal and self.window is None and self.documents is None

    @property
    def order_is_that_of_rows(self) -> bool:
        """Whether "later" means further along the row, for want of positions in one line too."""
        return self.by_row or self._unplaced or self.query_places.ndim > 2

    @property
    def in_step(self) -> bool:
        """Whether each query has its key in the same place, and order rises along the row."""
        if self.q_len != self.k_len or self.first_row is not None or self.q_rows is not None:
            return False
        if self.order_is_that_of_rows:
            return True
        positions = self.q_positions
        if not isinstance(positions, Tensor) or positions is not self.k_positions:
            return False
        if not may_look(positions):
            return False
        return bool((positions[..., 1:] > positions[..., :-1]).all())  # a difference may wrap

    @property
    def sees_all(self) -> bool:
        """Whether there is one query, the last, from which order hides nothing."""
        told = self.first_row is not None or self.q_rows is not None
        return self.q_len == 1 and self.order_is_that_of_rows and not told

    @property
    def _unplaced(self) -> bool:
        return self.q_positions is None and self.k_positions is None

    @property
    def is_one_segment(self) -> bool:
        """Whether that is known without a look: one run of queries and one of keys, all rows."""
        others = (
            self.attn_mask,
            self.padding_mask,
            self.documents,
            self.q_remapped,
            self.first_row,
            self.q_rows,
        )
        return self._unplaced and all(one is None for one in others)

    def segments(self) -> tuple[Segment, ...] | str:
        """The specification, taken apart into runs; or the reason why it cannot be.

        Queries that may see nothing are in none of them, and padded ones need not be.
        """
        return segments_of(self)


def _steps(positions: Tensor | Coordinates) -> Tensor:
    return positions.values if isinstance(positions, Coordinates) else positions


def _of(told: Any, part: slice) -> Any:
    """A part of what is told of each token: a tensor, coordinates, or nothing."""
    if told is None:
        return None
    return told[:, part] if told.ndim > 2 else told[..., part]


def _four(seen: Tensor) -> Tensor:
    """[*batch, q_len, k_len] → [batch, 1, q_len, k_len]."""
    return seen[None, None] if seen.ndim == 2 else seen[:, None]


def _both(seen: Tensor | None, other: Tensor) -> Tensor:
    return other if seen is None else seen & other
