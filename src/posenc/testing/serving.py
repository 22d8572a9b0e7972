"""The same token gets the same encoding, however tokens are laid out."""

from typing import Any

import torch
from torch import Tensor

from posenc import positions as lay_out
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.positional import Positional
from posenc.positions import consecutive
from posenc.testing.cases import Case, Scores, Tensors
from posenc.testing.compare import assert_differs, assert_same

SEQ = 8

APART = 2**20
"""Steps between tokens for encodings that do not tell near tokens apart, as a temperature."""

SCALE = 0.75
"""A scale that is not 1/√head_dim."""


def prefill_equals_decoding(case: Case) -> str | None:
    """Decoding step by step with a cache gives the results of one pass over all tokens."""
    module, subject = case.module(), case.subject()
    content = subject.content(SEQ)
    whole = subject.run(module, content, consecutive(SEQ))
    assert_same(subject.run(module, content, None), whole, "no positions", bitwise=True)
    if not getattr(module, "is_pointwise", True):
        return "it cannot encode a token alone (is_pointwise is False)"
    if getattr(module, "reads_later", False):
        return "it reads keys after the query (reads_later is True)"
    for step in range(SEQ):
        got = subject.decoded(module, content, consecutive(SEQ), step)
        what = f"token {step} decoded alone"
        assert_same(got, subject.seen(whole, step), what, bitwise=case.bitwise)
    return None


def kept_rows_serve(case: Case) -> str | None:
    """``encode_both``, also with rows of a kept table, equals encoding queries and keys apart."""
    module, subject = case.module(), case.subject()
    if not isinstance(module, QueryKeyEncoding):
        return "it encodes no queries and keys"
    table, order = subject.tables(module, consecutive(SEQ)), torch.tensor([3, 0, 0, 7, 5, 1, 2, 6])
    both = torch.stack([consecutive(SEQ), consecutive(SEQ, start=5)])
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        q, k = subject.content(SEQ, dtype=dtype)
        if not case.heads_first:
            q, k = q.transpose(-2, -3), k.transpose(-2, -3)
        for own, rows in ((table, None), (table, order), (subject.tables(module, both), None)):
            given = own if rows is None else subject.pick(own, rows)
            want = module.encode_queries(q, given), module.encode_keys(k, given)
            got = module.encode_both(q, k, own, rows)
            assert_same(got, want, f"rows {rows} in {dtype}", bitwise=case.bitwise)
    return None


def sharded(case: Case) -> str | None:
    """A rank that holds a part of the sequence encodes it as the whole does."""
    module, subject = case.module(), case.subject()
    if not getattr(module, "is_pointwise", True):
        return "it needs the tokens of other ranks (is_pointwise is False)"
    content = subject.content(SEQ)
    whole = subject.run(module, content, consecutive(SEQ))
    for layout in ("contiguous", "zigzag"):
        for rank in range(2):
            rows = lay_out.shard(SEQ, rank, 2, layout=layout)
            got = subject.run_rows(module, content, consecutive(SEQ), rows)
            what = f"{layout} shard {rank}"
            assert_same(got, subject.rows(whole, rows), what, bitwise=case.bitwise)
    return None


def left_padded(case: Case) -> None:
    """Padding before a sentence does not move its tokens."""
    module, subject = case.module(), case.subject()
    mask = torch.ones(2, SEQ, dtype=torch.bool)
    mask[0, :3] = False
    padded = subject.tables(module, lay_out.left_padded(mask))
    _same_tokens(case, padded[0], subject.tables(module, consecutive(SEQ - 3)), slice(3, SEQ))
    _same_tokens(case, padded[1], subject.tables(module, consecutive(SEQ)), slice(0, SEQ))


def packed(case: Case) -> None:
    """A document in a packed row is encoded as if it stood alone."""
    module, subject = case.module(), case.subject()
    together = subject.tables(module, lay_out.packed([5, 3]))
    _same_tokens(case, together, subject.tables(module, consecutive(5)), slice(0, 5))
    _same_tokens(case, together, subject.tables(module, consecutive(3)), slice(5, 8))


def rows_stand_alone(case: Case) -> None:
    """A row of a batch is encoded as it is alone, with shared positions and with its own.

    The same holds for two batch axes and for none.
    """
    module, subject = case.module(), case.subject()
    content = subject.content(SEQ, (6,))
    for positions in (consecutive(SEQ), torch.stack([consecutive(SEQ, start=n) for n in range(6)])):
        whole = subject.run(module, content, positions)
        pairs = tuple(part.unflatten(0, (2, 3)) for part in content)
        theirs = positions.unflatten(0, (2, 3)) if positions.ndim > 1 else positions
        two = tuple(part.flatten(0, 1) for part in subject.run(module, pairs, theirs))
        assert_same(two, whole, "two batch axes", bitwise=False)
        first = positions[0] if positions.ndim > 1 else positions
        bare = subject.run(module, tuple(part[0] for part in content), first)
        assert_same(bare, tuple(part[0] for part in whole), "no batch axis", bitwise=False)
        for row in range(6):
            mine = positions[row] if positions.ndim > 1 else positions
            alone = subject.run(module, tuple(part[row : row + 1] for part in content), mine)
            own = tuple(part[row : row + 1] for part in whole)
            assert_same(own, alone, f"row {row} of a batch", bitwise=False)


def neighbors_do_not_matter(case: Case) -> None:
    """A row of a table depends on its own position, not on length, order, offset or batch."""
    module, subject = case.module(), case.subject()
    for start in case.far(0, 10**6, 2**40):
        run = consecutive(SEQ, start=start)
        table = subject.tables(module, run)
        part = subject.tables(module, run[2:5])
        _same_tokens(case, table, part, slice(2, 5))
        order = torch.tensor([3, 0, 0, 7, 5])
        _same_tokens(case, table, subject.tables(module, run[order]), order)
        batch = subject.tables(module, torch.stack([run, run.flip(0)]))
        _same_tokens(case, table, batch[0], slice(0, SEQ))
        _same_tokens(case, table, batch[1], consecutive(SEQ).flip(0))
    if case.limit is None:
        # Enough rows for a faster way of building them, which must not show.
        many = 700 if isinstance(subject, Scores) else 40_000
        end = slice(many - SEQ, many)
        alone = subject.tables(module, consecutive(SEQ, start=many - SEQ))
        _same_tokens(case, subject.tables(module, consecutive(many)), alone, end)


def encodes_the_sequence(case: Case) -> None:
    """Equal tokens differ by their place in the sequence, and not by their row of the batch."""
    module, subject = case.module(), case.subject()
    content = tuple(part[:1].expand(3, *part.shape[1:]) for part in subject.content(SEQ))
    equal = tuple(part[..., :1, :].expand(part.shape).contiguous() for part in content)
    results = subject.call(module, equal, None)
    for made in results:
        assert_same(made[1:], made[:-1], "equal rows of a batch", bitwise=case.bitwise)
    if not _told_apart(results) and case.limit is None:  # a temperature may begin far out
        results = subject.call(module, equal, consecutive(SEQ) * APART)
    told = _told_apart(results)
    # An encoding may change only the queries.
    ours = [made for made, part in zip(results, equal, strict=False) if not torch.equal(made, part)]
    assert told, "equal tokens are encoded alike at every position"
    assert len(told) == len(ours), "one of the results is alike at every position"


def _told_apart(results: Tensors) -> list[Tensor]:
    """The results in which the tokens of a row differ."""
    return [made for made in results if not torch.equal(made, made[..., :1, :].expand_as(made))]


def neighbors_stay_distinct(case: Case) -> str | None:
    """Adjacent tokens get different rows, near and far; 256 and 257 are equal in bfloat16."""
    module, subject = case.module(), case.subject()
    if isinstance(subject, Scores) or not (case.distinct and module.keeps_neighbors_apart):
        return "its neighbors may share a row"
    for start in case.far(0, 256, 10**6, 2**24, 2**40, ahead=SEQ - 1):
        table = subject.tables(module, consecutive(SEQ, start=start)).flatten(1)
        distinct = len(table.unique(dim=0))
        assert distinct == SEQ, f"{SEQ} positions from {start} on have {distinct} different rows"
    return None


def _same_tokens(case: Case, table: Tensor, alone: Tensor, rows: slice | Tensor) -> None:
    """Assert that the part of a table for some tokens is the table of these tokens alone."""
    picked = case.subject().pick(table, rows)
    assert_same(picked, alone, "the same tokens among others", bitwise=case.bitwise)


def attention_at_another_scale(case: Case) -> str | None:
    """Attention with a given scale equals its definition, also where scores are made anew."""
    from posenc import attention  # here: the rest of the battery needs no backends
    from posenc.testing.reference import reference_attention

    module: Any = case.module().double()
    subject = case.subject()
    if not isinstance(subject, Scores):
        return "it takes no scores"
    scores, q, k, *hidden = subject.content(SEQ, dtype=torch.float64)
    at = subject.lifted(consecutive(SEQ))
    read: dict[str, Any] = {"q_hidden": hidden[0], "k_hidden": hidden[0]} if hidden else {}
    if getattr(module, "makes_anew", False):
        usual, other = (module(scores, at, at, q=q, k=k, scale=s, **read) for s in (None, SCALE))
        assert_differs((usual,), (other,), f"it makes scores anew and ignores scale={SCALE}")
    if at.ndim > 1:
        at = at.expand(len(q), *at.shape)  # a grid a row
    later = getattr(module, "reads_later", False)
    given = {"positional": Positional(scores=module), "q_positions": at, "k_positions": at, **read}
    visible = None if later else lambda row, query, key: key <= query
    want = reference_attention(q, k, k, visible=visible, scale=SCALE, **given)
    for backend in (None, "strided") if getattr(module, "has_profile", False) else (None,):
        got = attention(q, k, k, is_causal=not later, scale=SCALE, backend=backend, **given)
        what = f"attention with scale={SCALE}{', by its profile' if backend else ''}"
        assert_same(got, want, what, bitwise=False)
    return None
