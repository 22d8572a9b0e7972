"""Attention taken apart into runs: queries and keys that stand one position apart."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from posenc.backends.specification import AttentionSpecification
from posenc.guards import may_look
from posenc.positions import Coordinates

MOST_SEGMENTS = 4096  # a row; with more, each would be too small to pay for its call
FARTHEST = 2**61  # with any length of a row added, distances stay int64


@dataclass(frozen=True)
class Segment:
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

    @property
    def rows(self) -> tuple[slice, slice, slice]:
        """Where its queries lie in all queries."""
        return self.batch, slice(None), self.queries

    @property
    def columns(self) -> tuple[slice, slice, slice]:
        """Where its keys lie in all keys and values."""
        return self.batch, slice(None), self.keys


Run = tuple[slice, slice, int]
"""Queries, keys and offset of a segment in one row of the batch."""


def segments_of(told: AttentionSpecification) -> tuple[Segment, ...] | str:
    """A specification, taken apart into runs; or the reason why it cannot be.

    Queries that may see nothing are in none of them, and padded ones need not be.
    """
    if told.attn_mask is not None:
        return "the mask may be any"
    if told.queries.ndim > 2:
        return "positions are points of a grid"
    if isinstance(told.queries, Coordinates) or isinstance(told.keys, Coordinates):
        return "positions are real coordinates"
    tensors = (
        told.queries, told.keys, told.query_places, told.key_places, told.padding_mask,
        told.q_padding_mask, told.documents, told.q_documents, told.q_rows, told.k_rows,
    )  # fmt: skip
    given = [t for t in tensors if isinstance(t, Tensor)]
    if isinstance(told.first_row, Tensor) or not all(map(may_look, given)):
        return "positions and masks cannot be looked at here"
    rows = []
    for row in range(1 if _rows_are_alike(given) else told.batch):
        runs = _runs(told, row)
        if isinstance(runs, str):
            return runs
        rows.append(runs)
    return _gathered(rows, told.batch)


def runs_of_keys(told: AttentionSpecification) -> list[slice] | str:
    """The runs of keys one position apart, in all rows of the batch; or why none are known."""
    keys = told.keys
    if isinstance(keys, Coordinates) or keys.ndim > 2:
        return "positions are no numbers in one line"
    if not may_look(keys):
        return "positions cannot be looked at here"
    rows = keys if keys.ndim > 1 else keys.unsqueeze(0)
    ends = {run.stop for row in rows for run in consecutive_runs(row, slice(0, told.k_len))}
    return [slice(begin, end) for begin, end in pairwise(sorted({0, *ends}))]


def _rows_are_alike(given: list[Tensor]) -> bool:
    return all(t.ndim == 1 or len(t) == 1 for t in given)


def _runs(told: AttentionSpecification, row: int) -> list[Run] | str:
    """The segments of one row of the batch."""
    keys_of = _keys_of_documents(told, row)
    if isinstance(keys_of, str):
        return keys_of
    assert isinstance(told.queries, Tensor)
    assert isinstance(told.keys, Tensor)
    queries, keys = _row(told.queries, row), _row(told.keys, row)
    found: list[Run] = []
    for document, some in _queries_by_document(told, row):
        if document not in keys_of:
            continue
        seen = keys_of[document]
        if not _rises_by_one(keys[seen]):
            return "the positions of keys are not one apart"
        for run in consecutive_runs(queries, some):
            offset = int(queries[run.start]) - int(keys[seen.start])
            if abs(offset) > FARTHEST:
                return "distances leave the whole numbers of 64 bits"
            if not _keeps_order(told, row, run, seen, offset):
                return "encodings and order go by different positions"
            found.append((run, seen, offset))
    return found if len(found) <= MOST_SEGMENTS else "there are too many segments"


def _keeps_order(
    told: AttentionSpecification, row: int, run: slice, seen: slice, offset: int
) -> bool:
    """Whether distances of encodings are those by which order and windows hide keys."""
    if told.is_causal and told.q_rows is not None and told.k_rows is not None:
        if not _in_line(_row(told.q_rows, row)[run], _row(told.k_rows, row)[seen], offset):
            return False
    elif told.is_causal and told.order_is_that_of_rows:
        first = told.k_len - told.q_len if told.first_row is None else told.first_row
        if offset != first + run.start - seen.start:
            return False
    if told.q_remapped is None and told.k_remapped is None:
        return True
    queries, keys = _row(told.query_places, row)[run], _row(told.key_places, row)[seen]
    return _in_line(queries, keys, offset)


def _keys_of_documents(told: AttentionSpecification, row: int) -> dict[int, slice] | str:
    """The run of real keys of each document of one row."""
    ids = _labels(told.documents, told.padding_mask, row, told.k_len)
    if ids is None:
        return {0: slice(0, told.k_len)}
    found: dict[int, slice] = {}
    for document, run in _labeled_runs(ids):
        if document is None:
            continue
        if document in found:
            return "padding stands inside a document"
        found[document] = run
    return found


def _queries_by_document(told: AttentionSpecification, row: int) -> list[tuple[int, slice]]:
    """Runs of real queries of one row, each with its document."""
    ids = _labels(told.q_documents, told.q_padding_mask, row, told.q_len)
    if ids is None:
        return [(0, slice(0, told.q_len))]
    return [(document, run) for document, run in _labeled_runs(ids) if document is not None]


def _labels(documents: Tensor | None, real: Tensor | None, row: int, length: int):
    """The document of each token of a row (0 without documents), and whether it is real."""
    if documents is None and real is None:
        return None
    ids = torch.zeros(length, dtype=torch.int64) if documents is None else documents[row].cpu()
    kept = torch.ones(length, dtype=torch.bool) if real is None else real[row].cpu()
    return torch.stack((kept.long(), ids.where(kept, 0)))


def _labeled_runs(labels: Tensor) -> list[tuple[int | None, slice]]:
    """Runs of tokens with one label; ``None`` where they are padding."""
    values, counts = labels.unique_consecutive(dim=1, return_counts=True)
    ends = counts.cumsum(0).tolist()
    starts = [0, *ends[:-1]]
    return [
        (document if kept else None, slice(begin, end))
        for (kept, document), begin, end in zip(values.T.tolist(), starts, ends, strict=True)
    ]


def _in_line(queries: Tensor, keys: Tensor, offset: int) -> bool:
    """Whether both rise by one, and their first are ``offset`` apart."""
    unbroken = _rises_by_one(queries) and _rises_by_one(keys)
    return unbroken and int(queries[0]) - int(keys[0]) == offset


def _rises_by_one(positions: Tensor) -> bool:
    return consecutive_runs(positions, slice(0, len(positions))) == [slice(0, len(positions))]


def consecutive_runs(positions: Tensor, part: slice) -> list[slice]:
    """The runs of positions one apart within ``part``."""
    here, after = positions[part][:-1], positions[part][1:]
    # A difference alone would take the smallest int64 for the one after the largest.
    breaks = ((after - here != 1) | (after < here)).nonzero().flatten() + part.start + 1
    ends = [part.start, *breaks.tolist(), part.stop]
    return [slice(begin, end) for begin, end in pairwise(ends)]


def _gathered(rows: list[list[Run]], batch: int) -> tuple[Segment, ...]:
    """One segment for neighboring rows of the batch that are alike."""
    if len(rows) == 1:
        return tuple(Segment(slice(0, batch), *run) for run in rows[0])
    segments, begin = [], 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end] != rows[begin]:
            segments += [Segment(slice(begin, end), *run) for run in rows[begin]]
            begin = end
    return tuple(segments)


def _row(positions: Tensor, row: int) -> Tensor:
    return positions if positions.ndim == 1 else positions[row if len(positions) > 1 else 0]
