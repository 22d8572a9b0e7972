"""Whose keys a rank may need; every rank computes the same answer by itself."""

from typing import Any

import torch
from torch import Tensor

from posenc.backends.specification import AttentionSpecification
from posenc.distributed.tokens import Tokens
from posenc.positions import Coordinates


def may_see(
    queries: Tokens, keys: Tokens, given: AttentionSpecification, window: int | None
) -> bool:
    """Whether a query may see a key: never false where one does, at times true where none does."""
    rows = max(1 if t is None else len(t) for t in (*_sets(queries), *_sets(keys)))
    return any(_row_may(_one(queries, r), _one(keys, r), given, window) for r in range(rows))


def _row_may(
    queries: Tokens, keys: Tokens, given: AttentionSpecification, window: int | None
) -> bool:
    if not len(queries) or not len(keys):
        return False
    if given.is_causal:
        by_row = given.order_is_that_of_rows
        late, early = (t.rows if by_row else t.places for t in (queries, keys))
        if isinstance(late, Tensor) and isinstance(early, Tensor) and late.max() < early.min():
            return False
    if queries.documents is not None and keys.documents is not None:
        ours, theirs = queries.documents.aminmax(), keys.documents.aminmax()
        if int(ours.max) < int(theirs.min) or int(ours.min) > int(theirs.max):
            return False
    here, there = queries.places, keys.places
    if isinstance(here, Coordinates) or isinstance(there, Coordinates):
        return True  # as far as is looked at here
    if window is None or here.ndim > 1:
        return True
    if queries.documents is not None:  # which count their positions from 0 again
        return _nearest(queries.rows, keys.rows) < window if _follow_rows(queries, keys) else True
    return _nearest(here, there) < window


def _follow_rows(*sets: Tokens) -> bool:
    """Whether positions rise with rows, one by one, wherever documents do not begin."""
    steps = [t.rows - t.places for t in sets if isinstance(t.places, Tensor)]
    of_documents = [t.documents for t in sets]
    together, documents = torch.cat(steps), torch.cat([d for d in of_documents if d is not None])
    order = documents.argsort(stable=True)
    together, documents = together[order], documents[order]
    return not bool(((together.diff() != 0) & (documents.diff() == 0)).any())


def _nearest(queries: Tensor, keys: Tensor) -> int:
    """The least distance between two of them."""
    keys = keys.sort().values
    after = torch.searchsorted(keys, queries.contiguous()).clamp(max=len(keys) - 1)
    before = (after - 1).clamp(min=0)
    return min(int((queries - keys[i]).abs().min()) for i in (after, before))


def _sets(tokens: Tokens) -> list[Any]:
    grid = tokens.positions is not None and tokens.positions.ndim > 2
    positions = tokens.positions if grid or tokens.positions is None else _two(tokens.positions)
    rows = _two(tokens.rows)
    return [rows, positions, tokens.documents, tokens.real]


def _two(x: Any) -> Any:
    return x if x.ndim > 1 else x.unsqueeze(0)


def _one(tokens: Tokens, row: int) -> Tokens:
    """The real tokens of one row of the batch."""
    rows, positions, documents, real = (
        None if t is None else t[row if len(t) > 1 else 0] for t in _sets(tokens)
    )
    if real is not None:
        every = rows, positions, documents
        rows, positions, documents = (None if t is None else t[real] for t in every)
    assert rows is not None
    return Tokens(rows, positions, documents, None)
