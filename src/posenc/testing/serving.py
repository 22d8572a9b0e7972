"""The same token gets the same encoding, however tokens are laid out."""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from posenc import positions as lay_out
from posenc.encodings.positional import Positional
from posenc.positions import consecutive
from posenc.testing.cases import QueriesKeys, Rows, Scores, Subject, Tensors
from posenc.testing.compare import assert_differs, assert_same

SEQ = 8
APART = 2**20  # steps between tokens of what does not tell near ones apart, as a temperature
SCALE = 0.75  # a scale that is not 1/√head_dim


def prefill_equals_decoding(subject: Subject) -> str | None:
    """Decoding step by step with a cache gives the results of one pass over all tokens."""
    content, line = subject.content(SEQ), consecutive(SEQ)
    whole = subject.run(content, line)
    assert_same(subject.run(content), whole, "no positions", bitwise=True)
    if not subject.claims("is_pointwise", True):
        return "it cannot encode a token alone (is_pointwise is False)"
    if subject.claims("reads_later"):
        return "it reads keys after the query (reads_later is True)"
    for step in range(SEQ):
        tokens = list(line[: step + 1].split(1))
        want = subject.rows(whole, tokens[-1], keys=step + 1)
        got = subject.alone(content, line, tokens[-1], tokens)
        assert_same(got, want, f"token {step} decoded alone", bitwise=subject.case.bitwise)
    return None


def kept_rows_serve(subject: Subject) -> str | None:
    """``encode_both``, also with rows of a kept table, equals encoding queries and keys apart."""
    if not isinstance(subject, QueriesKeys):
        return "it encodes no queries and keys"
    module, order = subject.module, torch.tensor([3, 0, 0, 7, 5, 1, 2, 6])
    table = subject.tables(consecutive(SEQ))
    own = subject.tables(torch.stack([consecutive(SEQ), consecutive(SEQ, start=5)]))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        q, k = subject.laid_out(subject.content(SEQ, dtype=dtype))
        for kept, rows in ((table, None), (table, order), (own, None)):
            of_rows = kept if rows is None else kept[rows]
            want = module.encode_queries(q, of_rows), module.encode_keys(k, of_rows)
            got, what = module.encode_both(q, k, kept, rows), f"rows {rows} in {dtype}"
            assert_same(got, want, what, bitwise=subject.case.bitwise)
    return None


def sharded(subject: Subject) -> str | None:
    """A rank that holds a part of the sequence encodes it as the whole does."""
    if not subject.claims("is_pointwise", True):
        return "it needs the tokens of other ranks (is_pointwise is False)"
    content, line = subject.content(SEQ), consecutive(SEQ)
    whole = subject.run(content, line)
    for layout, rank in product(("contiguous", "zigzag"), range(2)):
        rows = lay_out.shard(SEQ, rank, 2, layout=layout)
        got = subject.alone(content, line, rows, [rows, line[~torch.isin(line, rows)]])
        want = subject.rows(whole, rows)
        assert_same(got, want, f"{layout} shard {rank}", bitwise=subject.case.bitwise)
    return None


def left_padded(subject: Subject) -> None:
    """Padding before a sentence does not move its tokens."""
    mask = torch.ones(2, SEQ, dtype=torch.bool)
    mask[0, :3] = False
    padded = subject.tables(lay_out.left_padded(mask))
    for row, pads in ((0, 3), (1, 0)):
        _same_tokens(subject, padded[row], slice(pads, SEQ), consecutive(SEQ - pads))


def packed(subject: Subject) -> None:
    """A document in a packed row is encoded as if it stood alone."""
    together = subject.tables(lay_out.packed([5, 3]))
    for first, last in ((0, 5), (5, 8)):
        _same_tokens(subject, together, slice(first, last), consecutive(last - first))


def neighbors_do_not_matter(subject: Subject) -> None:
    """A row of a table depends on its own position, not on length, order, offset or batch."""
    order, back = torch.tensor([3, 0, 0, 7, 5]), consecutive(SEQ).flip(0)
    for start in subject.case.far(0, 10**6, 2**40):
        run = consecutive(SEQ, start=start)
        table, batch = subject.tables(run), subject.tables(torch.stack([run, run.flip(0)]))
        for rows in (slice(2, 5), order):
            _same_tokens(subject, table, rows, run[rows])
        for row, rows in ((0, slice(SEQ)), (1, back)):
            _same_tokens(subject, batch[row], rows, run)
    if subject.case.limit is None:
        # Enough rows for a faster way of building them, which must not show.
        many = 700 if isinstance(subject, Scores) else 40_000
        run = consecutive(many)
        _same_tokens(subject, subject.tables(run), slice(many - SEQ, many), run[-SEQ:])


def _same_tokens(subject: Subject, table: Tensor, rows: Rows, positions: Tensor) -> None:
    """Assert that some rows of a table are the table of these positions alone."""
    got, alone = subject.pick(table, rows), subject.tables(positions)
    assert_same(got, alone, "the same tokens among others", bitwise=subject.case.bitwise)


def rows_stand_alone(subject: Subject) -> None:
    """A row of a batch is encoded as it is alone, with shared positions and with its own.

    The same holds for two batch axes and for none.
    """
    content = subject.content(SEQ, (6,))
    parts: dict[str, Callable[[Tensor], Tensor]] = {
        f"row {n} of a batch": lambda x, n=n: x[n : n + 1] for n in range(6)
    }
    parts |= {"two batch axes": lambda x: x.unflatten(0, (2, 3)), "no batch axis": lambda x: x[0]}
    for positions in (consecutive(SEQ), torch.stack([consecutive(SEQ, start=n) for n in range(6)])):
        whole = subject.run(content, positions)
        for what, part in parts.items():
            theirs = part(positions) if positions.ndim > 1 else positions
            got, want = subject.run(tuple(map(part, content)), theirs), tuple(map(part, whole))
            assert_same(got, want, what, bitwise=False)


def encodes_the_sequence(subject: Subject) -> None:
    """Equal tokens differ by their place in the sequence, and not by their row of the batch."""
    content = tuple(part[:1].expand(3, *part.shape[1:]) for part in subject.content(SEQ))
    equal = tuple(part[..., :1, :].expand(part.shape).contiguous() for part in content)
    results = subject.call(equal)
    for made in results:
        assert_same(made[1:], made[:-1], "equal rows of a batch", bitwise=subject.case.bitwise)
    if not _told_apart(results) and subject.case.limit is None:  # a temperature may begin far out
        results = subject.call(equal, consecutive(SEQ) * APART)
    told = _told_apart(results)
    # An encoding may change only the queries.
    ours = [made for made, part in zip(results, equal, strict=False) if not torch.equal(made, part)]
    assert told, "equal tokens are encoded alike at every position"
    assert len(told) == len(ours), "one of the results is alike at every position"


def _told_apart(results: Tensors) -> list[Tensor]:
    """The results in which the tokens of a row differ."""
    return [made for made in results if not torch.equal(made, made[..., :1, :].expand_as(made))]


def neighbors_stay_distinct(subject: Subject) -> str | None:
    """Adjacent tokens get different rows, near and far; 256 and 257 are equal in bfloat16."""
    if isinstance(subject, Scores) or not subject.claims("keeps_neighbors_apart"):
        return "its neighbors may share a row"
    for start in subject.case.far(0, 256, 10**6, 2**24, 2**40, ahead=SEQ - 1):
        table = subject.tables(consecutive(SEQ, start=start)).flatten(1)
        distinct = len(table.unique(dim=0))
        assert distinct == SEQ, f"{SEQ} positions from {start} on have {distinct} different rows"
    return None


def attention_at_another_scale(subject: Subject) -> str | None:
    """Attention with a given scale equals its definition, also where scores are made anew."""
    from posenc import attention  # here: the rest of the battery needs no backends
    from posenc.testing.reference import reference_attention

    if not isinstance(subject, Scores):
        return "it takes no scores"
    subject.module.double()
    line, content = consecutive(SEQ), subject.content(SEQ, dtype=torch.float64)
    _, q, k, *hidden = content
    if subject.module.makes_anew:
        usual, other = (subject.called(content, line, scale=scale) for scale in (None, SCALE))
        assert_differs((usual,), (other,), f"it makes scores anew and ignores scale={SCALE}")
    at, later = subject.lifted(line), subject.module.reads_later
    if at.ndim > 1:
        at = at.expand(len(q), *at.shape)  # a grid a row
    given: dict[str, Any] = {"positional": Positional(scores=subject.module), "scale": SCALE}
    given |= {"q_positions": at, "k_positions": at}
    given |= {name: x for x in hidden for name in ("q_hidden", "k_hidden")}
    visible = None if later else lambda row, query, key: key <= query
    want = reference_attention(q, k, k, visible=visible, **given)
    for backend in (None, "strided") if subject.module.has_profile else (None,):
        got = attention(q, k, k, is_causal=not later, backend=backend, **given)
        what = f"attention with scale={SCALE}{', by its profile' if backend else ''}"
        assert_same(got, want, what, bitwise=False)
    return None
