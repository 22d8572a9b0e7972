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
    """A run of queries and the run of keys that they may see, both one position apart."""

    batch: slice  # the rows of the batch for which it holds
    queries: slice  # where the queries lie in their row
    keys: slice  # where the keys lie in theirs
    offset: int  # position of the first query less that of the first key

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


def segments_of(spec: AttentionSpecification) -> tuple[Segment, ...] | str:
    """The segments of a specification; or the reason why it has none."""
    if spec.attn_mask is not None:
        return "the mask may be any"
    if spec.queries.ndim > 2:
        return "positions are points of a grid"
    if isinstance(spec.queries, Coordinates) or isinstance(spec.keys, Coordinates):
        return "positions are real coordinates"
    tensors = (
        spec.queries, spec.keys, spec.query_places, spec.key_places, spec.padding_mask,
        spec.q_padding_mask, spec.documents, spec.q_documents, spec.q_rows, spec.k_rows,
    )  # fmt: skip
    given = [t for t in tensors if isinstance(t, Tensor)]
    if isinstance(spec.first_row, Tensor) or not all(map(may_look, given)):
        return "positions and masks cannot be looked at here"
    alike = all(t.ndim == 1 or len(t) == 1 for t in given)
    rows = []
    for row in range(1 if alike else spec.batch):
        runs = _runs(spec, row)
        if isinstance(runs, str):
            return runs
        rows.append(runs)
    return _gathered(rows, spec.batch)


def runs_of_keys(spec: AttentionSpecification) -> list[slice] | str:
    """The runs of keys one position apart, in all rows of the batch; or why none are known."""
    keys = spec.keys
    if isinstance(keys, Coordinates) or keys.ndim > 2:
        return "positions are no numbers in one line"
    if not may_look(keys):
        return "positions cannot be looked at here"
    rows = keys if keys.ndim > 1 else keys.unsqueeze(0)
    ends = {run.stop for row in rows for run in _consecutive_runs(row, slice(0, spec.k_len))}
    return [slice(begin, end) for begin, end in pairwise(sorted({0, *ends}))]


def _runs(spec: AttentionSpecification, row: int) -> list[Run] | str:
    """The segments of one row of the batch."""
    keys_of: dict[int, slice] = {}
    for document, run in _documents(spec.documents, spec.padding_mask, row, spec.k_len):
        if document in keys_of:
            return "padding stands inside a document"
        keys_of[document] = run
    queries, keys = _row(spec.queries, row), _row(spec.keys, row)
    found: list[Run] = []
    for document, some in _documents(spec.q_documents, spec.q_padding_mask, row, spec.q_len):
        if document not in keys_of:
            continue
        seen = keys_of[document]
        if not _rises_by_one(keys[seen]):
            return "the positions of keys are not one apart"
        for run in _consecutive_runs(queries, some):
            offset = int(queries[run.start]) - int(keys[seen.start])
            if abs(offset) > FARTHEST:
                return "distances leave the whole numbers of 64 bits"
            if not _keeps_order(spec, row, run, seen, offset):
                return "encodings and order go by different positions"
            found.append((run, seen, offset))
    return found if len(found) <= MOST_SEGMENTS else "there are too many segments"


def _keeps_order(
    spec: AttentionSpecification, row: int, run: slice, seen: slice, offset: int
) -> bool:
    """Whether distances of encodings are those by which order and windows hide keys."""

    def in_line(queries: Tensor | Coordinates, keys: Tensor | Coordinates) -> bool:
        some, others = _row(queries, row)[run], _row(keys, row)[seen]
        unbroken = _rises_by_one(some) and _rises_by_one(others)
        return unbroken and int(some[0]) - int(others[0]) == offset

    if spec.is_causal and spec.q_rows is not None and spec.k_rows is not None:
        if not in_line(spec.q_rows, spec.k_rows):
            return False
    elif spec.is_causal and spec.order_is_that_of_rows:
        first = spec.k_len - spec.q_len if spec.first_row is None else spec.first_row
        if offset != first + run.start - seen.start:
            return False
    remapped = spec.q_remapped is not None or spec.k_remapped is not None
    return not remapped or in_line(spec.query_places, spec.key_places)


def _documents(
    documents: Tensor | None, real: Tensor | None, row: int, length: int
) -> list[tuple[int, slice]]:
    """The runs of real tokens of one row, each with its document (0 if there are none)."""
    if documents is None and real is None:
        return [(0, slice(0, length))]
    ids = torch.zeros(length, dtype=torch.int64) if documents is None else documents[row].cpu()
    kept = torch.ones(length, dtype=torch.bool) if real is None else real[row].cpu()
    labels = torch.stack((kept.long(), ids.where(kept, 0)))
    values, counts = labels.unique_consecutive(dim=1, return_counts=True)
    ends = counts.cumsum(0).tolist()
    runs = map(slice, [0, *ends[:-1]], ends)
    return [(id_, run) for (kept, id_), run in zip(values.T.tolist(), runs, strict=True) if kept]


def _rises_by_one(positions: Tensor) -> bool:
    whole = slice(0, len(positions))
    return _consecutive_runs(positions, whole) == [whole]


def _consecutive_runs(positions: Tensor, part: slice) -> list[slice]:
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


def _row(positions: Tensor | Coordinates, row: int) -> Tensor:
    assert isinstance(positions, Tensor)
    return positions if positions.ndim == 1 else positions[row if len(positions) > 1 else 0]
