"""Questions to all that gives each token something by its place: rows added, or a rotation.

An inquiry has the data of its place: which content is asked with, how much rounding costs.
"""

from inspect import isfunction
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import varies
from posenc.audit.questions import rows
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_NUMBER,
    NO_ORDER,
    NO_PLACE,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.inquiry import ROUNDED, ROUNDING, STARTS, Inquiry, listed
from posenc.audit.questions.traces import after_calls, apart, gradients, untouched
from posenc.audit.questions.ways import CHANCE, Way, alike, by_chance, training
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


@question()
def leaves_its_input_alone(q: Any) -> Answer:
    """Is what it is given after the call what it was before?"""
    return untouched(q.once)


@question()
def keeps_no_state(q: Inquiry) -> Answer:
    """Does a call leave no trace in the next: not its length, its dtype or its positions?"""
    seq, far = q.most(29), q.longest
    other = min(100, far)
    cases = [
        ("state-between-calls", seq, torch.float32, seq),
        ("history-changes-result", far, torch.float32, seq),
        ("state-between-calls", max(2, seq // 2), torch.float32, seq),
        ("first-dtype-cached", seq, torch.bfloat16, seq),
        ("first-dtype-cached", seq, torch.float16, seq),
    ]
    if other > seq:
        cases.insert(3, ("state-between-calls", other // 2, torch.float32, other))
    if q.view.fixed:
        cases = [case for case in cases if case[1] == seq]

    def call(seq: int, dtype: torch.dtype, by: Any) -> Tensor:
        return q.made(q.content(seq).to(dtype), by=by)

    fresh = q.view.subject.fresh
    return _after_other_positions(q, q.most(23)) or after_calls(call, fresh, cases)


def _after_other_positions(q: Inquiry, seq: int) -> Answer | None:
    """A fault where as many tokens at other positions get what those before got."""
    if not q.view.moves or q.view.fixed or seq < 4:
        return None
    line, last = torch.arange(seq), torch.tensor([seq - 1])
    mixed = torch.cat((line[:1], line[1:-1].flip(0), last))  # first, last and sum as before
    fewer = torch.cat((line[:1], line[1:-1] // 2, last))
    for words, before, then in (
        ("from position 5 on", line[None] + 5, line[None]),
        ("at the same positions in another order", mixed[None], line[None]),
        ("between the same first and last position", fewer[None], line[None]),
        ("whose second row has other positions", line.expand(2, -1), torch.stack((line, fewer))),
    ):
        if q.view.moves == "offset" and bool((before.diff() != 1).any() | (then.diff() != 1).any()):
            continue
        if len(then) > 1 and not q.by_rows:
            continue
        x, used = q.content(seq, len(then)), q.view.subject.fresh()
        try:
            clean = q.made(x, then)
            q.made(x, before, used)
            off = apart(q.made(x, then, used), clean)
        except NotAskedError:
            continue
        if off:
            said = f"after {seq} tokens {words}, as many from 0 on come out up to {off:.3g} away"
            return fault("state-between-calls", f"{said} from a fresh one", off)
    return None


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


FIRST_ROW = "index by each row's own positions, not by those of the first row alone"


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
                off = _off_from_rows(q, x, at)
            except NotAskedError:
                continue
            worst, asked = max(worst, off), [*asked, count]
            if off >= ROUNDING:
                said = f"rows of {count} that begin at {listed(starts)} are up to {off:.3g} away"
                shared = max(apart(m, m[:1].expand_as(m)) for m in _first_for_all(q, x, at)) == 0
                remedy = FIRST_ROW if shared else ""
                name = "padding-shifts-positions" if count == 1 else q.of_rows
                return fault(name, f"{said} from these rows alone", off, remedy=remedy)
            break
    if not asked:
        raise NotAskedError("it refuses positions for each row")
    return f"{worst:.1g} apart from the rows alone, of {' and '.join(map(str, asked))} tokens"


def _off_from_rows(q: Inquiry, x: Tensor, at: Tensor) -> float:
    """How far rows of a batch come out from themselves alone."""
    offs = []
    for side in q.sides:
        made = q.made(x, at, side=side)
        alone = [q.alone_row(x[i : i + 1], at[i], side) for i in range(len(x))]
        offs.append(apart(made, torch.cat(alone)))
    return max(offs)


def _first_for_all(q: Inquiry, x: Tensor, at: Tensor) -> list[Tensor]:
    """What equal content of all rows comes to."""
    return [q.made(x[:1].expand_as(x).contiguous(), at, side=side) for side in q.sides]


@question(after=(*NO_LENGTH, *NO_STATE, "gradient-cut"))
def same_however_it_is_given(q: Inquiry) -> Answer:
    """Do tokens get the same in larger batches, in training and in other dtypes?"""
    answer = ""
    for side in q.sides:
        x = q.sample()
        plain = q.made(x, side=side)
        said = alike(
            (*_ways(q, x, plain, side), *q.own_ways(x, plain, side)),
            max(1.0, (x if x.any() else plain).abs().max().item()),
        )
        if not isinstance(said, str):
            return said
        answer = answer or said
    return answer


def _ways(q: Inquiry, x: Tensor, plain: Tensor, side: str) -> list[Way]:
    def batch(size: int) -> tuple[Tensor, Tensor]:
        more = torch.cat((x, x[:1].expand(size - len(x), *x.shape[1:])))
        made = q.made(more, side=side)
        return made, torch.cat((plain, plain[:1].expand(size - len(x), *plain.shape[1:])))

    def narrow(dtype: torch.dtype, rows: int | None = None) -> tuple[Tensor, Tensor]:
        return q.made(x.to(dtype), side=side)[..., :rows, :], plain[..., :rows, :]

    ways: list[Way] = [
        ("in a batch of 3", q.dense, lambda: batch(3)),
        ("in a batch of 5", q.dense, lambda: batch(5)),
        ("in float64", q.wide, lambda: narrow(torch.float64)),
        ("in float16", max(q.wide, q.in_float16), lambda: narrow(torch.float16)),
        # of later tokens, positions in 16 bits are a loss, which is asked for elsewhere
        ("in bfloat16", max(q.wide, ROUNDED), lambda: narrow(torch.bfloat16, 3)),
    ]
    thing = q.view.subject.fresh()
    if isinstance(thing, nn.Module):
        thing, drawn = training(thing), q.drawn(x)
        trained = lambda: (q.made(drawn, by=thing, side=side), q.made(drawn, side=side))  # noqa: E731
        chance = by_chance(lambda: q.made(drawn, by=thing, side=side))
        ways.append((CHANCE if chance else "in training", q.dense, trained))
    return ways


@question(after=NO_PLACE)
def is_precise(q: Inquiry) -> Answer:
    """Up to the length that counts, is it what exact arithmetic gives?"""
    line, errors, held = q.errors_to_the_end()
    off, moved = errors.abs().amax(1), q.moved(errors)
    last, worst = int(line[-1]), off.max().item()
    marks = [p for p in q.marks if p < last]
    q.errors |= {p: off[line <= p].max().item() for p in [*marks, last]}
    if q.rounded:
        said = f"frequencies are rounded to {q.rounded}: at position {last:,} {worst:.3g} off"
        return fault("frequencies-in-16-bits", said, worst)
    if held:
        said = f"every number is one of {held}: up to {worst:.3g} off"
        return fault("table-in-16-bits", said, worst)
    if (first := rows.parting(line, off)) is not None:
        near, far = off[:first].max().item(), off[first].item()
        said = f"up to {near:.3g} off to position {int(line[first - 1]):,}, but {far:.3g} at"
        said += f" {int(line[first]):,}, which no rounding does: positions there are read as others"
        return fault("far-positions-otherwise", said, int(line[first]))
    if moved.max() > q.lossy:
        said = f"from position {int(line[moved > q.lossy][0]):,} on {q.words} by more than"
        said += f" {q.lossy:g}, up to {moved.max():.3g}; exact ones are 3e-08 off"
        return fault("precision-lost", said, worst)
    return f"up to {worst:.1g} off to position {last:,}; {q.words} by {moved.max():.1g}"


@question(after=(*NO_NUMBER, "first-dtype-cached"))
def survives_a_cast(q: Inquiry) -> Answer:
    """After ``.bfloat16()``, is it as good as rounding once makes it?"""
    module = q.view.subject.fresh()
    if not isinstance(module, nn.Module):
        raise NotAskedError("it is no module")
    if q.is_trained:
        raise NotAskedError("it has parameters, which a cast must round")
    at, exact = q.far_rows()
    off, row = q.farthest(q.far_rows(torch.bfloat16, module.bfloat16())[1], exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    said = f"after .bfloat16() a token at {at[row]:,} is {off:.3g} off; one rounding costs 0.004"
    return fault("cast-breaks-it", said, off)


@question(after=NO_NUMBER)
def survives_autocast(q: Inquiry) -> Answer:
    """Inside autocast to bfloat16, is float32 content given what it is outside of it?"""
    if q.gives_tables and isfunction(q.view.subject.fresh()):
        raise NotAskedError("a function that gives a table may be called before autocast begins")
    (at, exact), built = q.far_rows(), q.view.subject.fresh()
    with torch.autocast("cpu", torch.bfloat16):
        made = q.far_rows(by=built)[1]
    off, row = q.farthest(made, exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}"
    lost = rows.lost_neighbors(made[0], exact[0])
    alike = f"; {lost} neighbors receive the same" if lost else ""
    said = f"inside torch.autocast a token at {at[row]:,} is {off:.3g} off{alike}: angles by a"
    said += " product of matrices are rounded with the layers around"
    return fault("autocast-breaks-it", said, off)


@question(after=NO_NUMBER)
def keeps_16_bits(q: Inquiry) -> Answer:
    """Are bfloat16 inputs given what float32 ones are, up to their own rounding?"""
    at, exact = q.far_rows()
    made = q.far_rows(torch.bfloat16)[1]
    off, row = q.farthest(made, exact)
    lost = rows.lost_rows(made[0], exact[0]) if q.counts_rows else 0
    if off >= ROUNDED or lost:
        fewer = f", and {lost} rows are as others" if lost else ""
        said = f"in bfloat16 a token at {at[row]:,} is {off:.3g} off{fewer}: positions or angles "
        return fault("positions-in-16-bits", f"{said}are held in 16 bits", off)
    came = q.made(q.content(q.most(2)).bfloat16()).dtype
    if came != torch.bfloat16 and getattr(q.view, "scale", 1.0) is not None:
        kind = str(came).removeprefix("torch.")
        said = f"bfloat16 content comes back as {kind}: the rest of the model runs in that"
        return fault("dtype-changed", said)
    return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"


@question()
def gradients_flow(q: Any) -> Answer:
    """Does every parameter get a gradient in training, and the input too?"""
    thing = training(q.view.subject.fresh())
    answer: Answer = ""
    for call, x, whole in q.trained(thing):
        said = gradients(thing if whole else None, call, x, q.trained_otherwise(thing))
        if not isinstance(said, str):
            return said
        answer = answer or said
    return answer
