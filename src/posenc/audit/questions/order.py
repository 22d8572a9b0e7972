"""Questions to all that encodes positions: order, lengths, and what each position means."""

from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.sizes import varies
from posenc.audit.questions import rows
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_ORDER,
    NO_PLACE,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.inquiry import ROUNDING, STARTS, Inquiry, listed
from posenc.audit.questions.traces import apart
from posenc.audit.report import FewerRowsError, NotAskedError

FLOAT32 = 2.0**-20
"""How far a row may be off for each position, where angles are computed in float32."""


@question(essential=True)
def encodes_the_sequence(q: Inquiry) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    sides = q.of_equal_tokens()
    along = max(varies(made, -2) for made in sides)
    for axis, name in enumerate(("batch-axis-encoded", "head-axis-encoded")):
        across = max((varies(x, axis) for x in sides if x.ndim > axis + 2), default=0.0)
        if across > 1e-6:
            words = "heads" if axis else "rows of a batch"
            said = f"equal {words} come out up to {across:.3g} apart, neighbors {along:.3g}"
            return fault(name, said, across)
    if along <= 1e-9 and (along := varies(q.near, 0)) <= 1e-9:
        return fault(
            "encodes-nothing", "all positions of a row come out alike", along, expected=1.0
        )
    if q.view.layout == "sbd" and q.view.kind == "added" and not q.view.declared:
        said = "axis 0 carries the position: it takes [seq, batch, dim], not [batch, seq, dim]"
        return fault("takes-sequence-first", said, along)
    return f"neighbors up to {along:.3g} apart, equal rows and heads 0"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(q: Inquiry) -> Answer:
    """Does a position receive the same in a short row and in a long one?"""
    if q.view.fixed:
        raise NotAskedError(f"it takes rows of {q.view.seq} tokens alone")
    long = q.most(24)
    short = max(2, long * 3 // 8)
    x = q.content(long, seed=2)
    whole, part = ([q.made(x[..., :n, :], side=s) for s in q.sides] for n in (long, short))
    off = max(apart(a[..., :short, :], b) for a, b in zip(whole, part, strict=True))
    if off < ROUNDING:
        if (longer := q.in_longer_rows()) is not None:
            words, off = longer
            return fault("depends-on-length", f"{words}: up to {off:.3g} apart", off)
        return f"{off:.1g} apart between {short} and {long} tokens"
    if (excuse := q.excused(whole, part)) is not None:
        return excuse
    said = f"in rows of {short} and {long} tokens the same tokens come out up to {off:.3g} apart"
    return fault("depends-on-length", said, off)


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(q: Inquiry) -> Answer:
    """Does every position receive a row of its own, also beyond the length it is built for?"""
    if (found := q.ends_silently()) is not None:
        return found
    line, table, refused = q.far
    if (found := rows.beyond(table, torch.tensor(line), q.what)) is not None:
        return found
    ends = f"; beyond {line[-1]:,} it refuses ({refused[:80]})" if refused else ""
    return f"{len(line):,} positions to {line[-1]:,}, all different{ends}"


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(q: Inquiry) -> Answer:
    """Does one token behind a cache receive what it does in the whole row?"""
    if (other := q.decodes_otherwise()) is not None:
        return other
    if not q.view.moves:
        raise NotAskedError("the first position cannot be said")
    places, worst = q.decoded, 0.0
    x = q.content(places[-1] + 1, seed=3)
    for side in q.sides:
        whole = q.made(x, side=side)

        def off(shift: int, places: Any, side: str = side, whole: Tensor = whole) -> float:
            alone = [q.made(x[..., [p], :], _one(p + shift), side=side) for p in places]
            return apart(torch.cat(alone, -2), whole[..., list(places), :])

        far = off(0, places)
        worst = max(worst, far)
        if far < ROUNDING:
            continue
        for shift in (1, -1):
            if off(shift, places[2:]) < ROUNDING:
                said = f"token p receives what p {'−' if shift == 1 else '+'} 1 does in the row"
                return fault("off-by-one-after-cache", f"behind a cache {said}", far)
        said = f"tokens given one by one are up to {far:.3g} away from those given together"
        return fault("decoding-differs-from-prefill", said, far)
    return _in_a_long_row(q) or f"{worst:.1g} apart to position {places[-1]}"


def _one(position: int) -> Tensor:
    return torch.tensor([position])


LONG = (63, 64, 65, 127, 128, 129, 255, 257, 511, 513)


def _in_a_long_row(q: Inquiry) -> Answer | None:
    """A fault where far tokens of as long a row as is cheap differ from themselves alone."""
    for length in q.long_rows:
        places = sorted({p for p in (*LONG, length - 1) if p < length})
        x = q.content(length, seed=4)
        try:
            q.made(x[..., :1, :], _one(length - 1))
            wholes = [q.made(x, side=side)[..., places, :] for side in q.sides]
        except NotAskedError:
            continue
        for side, whole in zip(q.sides, wholes, strict=True):
            for index, p in enumerate(places):
                off = apart(q.made(x[..., [p], :], _one(p), side=side), whole[..., [index], :])
                if off > ROUNDING + p * FLOAT32 * x.abs().max():
                    said = f"token {p} of {length} is up to {off:.3g} away from itself alone"
                    return fault("decoding-differs-from-prefill", said, off)
        return None
    return None


@question(after=NO_PLACE)
def reads_every_position(q: Inquiry) -> Answer:
    """Does each token receive what its own position means: several at once, far, in any order?"""
    heard = []
    for name, off in q.by_other_parameters():
        if off > ROUNDING:
            return _misread(f"three tokens from 5 on, said by {name}", off)
        heard.append(f"so by {name}")
    if not q.view.moves:
        if heard:
            return "; ".join(heard)
        return q.not_said()
    asked: list[Tensor] = []
    for line in q.lines():
        x = q.content(len(line), seed=5)
        try:
            off = max(apart(q.made(x, line, side=s), q.alone(x, line, s)) for s in q.sides)
        except NotAskedError:  # it may refuse what a table built of the whole row has
            continue
        if off > (ROUNDING if int(line.max()) < 20 else 1e-3):
            return _misread(f"tokens at {listed(line)} together", off)
        asked.append(line)
    if not asked:
        raise NotAskedError("it refuses several positions at once")
    words = f"three at once up to position {max(int(line.max()) for line in asked):,}"
    if q.view.unsaid is not None:
        count, off = q.unsaid_row()
        if off > ROUNDING:
            return _misread(f"a row of {count:,} tokens without positions", off)
        words += f"; without positions, {count:,} tokens"
    return _over_the_edge(q) or "; ".join((words, *heard))


def _misread(what: str, off: float) -> Answer:
    said = f"{what}: up to {off:.3g} away from what each of these positions means"
    return fault("positions-misread", said, off)


def _over_the_edge(q: Inquiry) -> Answer | None:
    """A fault where one token at the end of a table, or two across it, are answered wrongly.

    A slice of a table that ends there is shorter than the tokens, and joins them all the same
    where it has one row, or where there is one token.
    """
    for edge in q.edges():
        for first, count in ((edge, 1), (edge - 1, 2), (edge, 2)):
            try:
                made = q.row_at(torch.arange(first, first + count))
            except FewerRowsError:
                words = "no row for each comes back, without a word"
            except NotAskedError:
                continue
            else:
                if count == 1 or not torch.equal(made[0], made[1]):
                    continue
                words = "both receive one and the same, without a word"
            said = f"the table ends before position {edge:,}; of {count} from {first:,} on {words}"
            return fault("truncated-silently", said, edge)
    return None


@question(after=(*NO_LENGTH, *NO_STATE, "depends-on-how-it-is-given", "positions-misread"))
def rows_have_their_own_positions(q: Inquiry) -> Answer:
    """In a batch with padding on the left, does each row get what its own positions mean?"""
    if not q.by_rows:
        raise NotAskedError("positions cannot be said for each row")
    worst, asked = 0.0, []
    for count in (6, 1):  # a row of a prompt, and the token that is decoded after one
        for starts in (STARTS, STARTS[:2]):  # two rows, where a cache has no room for more
            at = starts[:, None] + torch.arange(count)
            x = q.content(count, len(starts), seed=4)
            try:
                away = {side: _off_from_rows(q, x, at, side) for side in q.sides}
            except NotAskedError:
                continue
            off = max(away.values())
            worst, asked = max(worst, off), [*asked, count]
            if off >= ROUNDING:
                said = f"rows of {count} that begin at {listed(starts)} are up to {off:.3g} away"
                equal = x[:1].expand_as(x).contiguous()
                made = [q.made(equal, at, side=s) for s, one in away.items() if one >= ROUNDING]
                if all(not apart(m, m[:1].expand_as(m)) for m in made):
                    said += " from these rows alone: all stand where the first does"
                    return fault("first-row-for-all", said, off)
                name = "padding-shifts-positions" if count == 1 else q.of_rows
                return fault(name, f"{said} from these rows alone", off)
            break
    if not asked:
        raise NotAskedError("it refuses positions for each row")
    return f"{worst:.1g} apart from the rows alone, of {' and '.join(map(str, asked))} tokens"


def _off_from_rows(q: Inquiry, x: Tensor, at: Tensor, side: str) -> float:
    """How far rows of a batch come out from themselves alone."""
    alone = [q.made(x[i : i + 1], at[i][None], side=side) for i in range(len(x))]
    return apart(q.made(x, at, side=side), torch.cat(alone))
