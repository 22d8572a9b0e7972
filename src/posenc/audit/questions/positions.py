"""Questions to all that encodes positions: order, lengths, what each means, and how precisely."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from inspect import isfunction
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.layouts import ONE_ROW, varies
from posenc.audit.questions import rows
from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.asking import ROUNDED, ROUNDING, Answer, Way, compared, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_NUMBER, NO_ORDER, NO_PLACE, NO_STATE, fault
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.rotary.rotation import decodes_otherwise
from posenc.audit.questions.rows import apart
from posenc.audit.report import Fault, FewerRowsError, NotAskedError
from posenc.audit.signatures import lengths_of, unbound

Encoding = AddedInquiry | RotaryInquiry

STARTS = torch.tensor([0, 5, 1, 3, 2])  # where rows of a batch begin, whose padding is on the left
# rows of a prompt, and tokens decoded after one; two rows, where a cache has room for no more
PADDED = [(starts, count) for count in (6, 1) for starts in (STARTS[:2], STARTS)]
DECODED = (0, 1, 2, 3, 5, 7, 8)  # tokens of a row of nine that are asked alone


@question(essential=True)
def encodes_the_sequence(q: Encoding) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    sides = q.called(torch.ones_like(q.content(q.view.seq, q.batch(3))))
    along = max(varies(made, -2) for made in sides)
    for axis, name in enumerate(("batch-axis-encoded", "head-axis-encoded")):
        across = max((varies(x, axis) for x in sides if x.ndim > axis + 2), default=0.0)
        if across > 1e-6:
            return fault(name, f"what is equal along it comes out {across:.3g} apart", across)
    if along <= 1e-9 and (along := varies(q.near, 0)) <= 1e-9:
        return fault("encodes-nothing", "positions come out alike", along, expected=1.0)
    if q.view.layout == "sbd" and q.view.kind == "added" and not q.view.declared:
        return fault("takes-sequence-first", "it takes [seq, batch, dim]: axis 0 is encoded", along)
    return f"neighbors up to {along:.3g} apart, equal rows and heads 0"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(q: Encoding) -> Answer:
    """Does a position receive the same in a short row and in a long one?"""
    needed(not q.view.fixed, f"it takes rows of {q.view.seq} tokens alone")
    long = q.most(24)
    short = max(2, long * 3 // 8)
    x = q.content(long, seed=2)
    whole, part = (q.called(x[..., :n, :]) for n in (long, short))
    off = max(apart(a[..., :short, :], b) for a, b in zip(whole, part, strict=True))
    if off >= ROUNDING:
        if (excuse := q.excused(whole, part)) is not None:
            return excuse
    elif (off := q.beside_far_tokens()) < q.dense:
        return f"{off:.1g} apart between rows of {short} tokens and longer ones"
    return fault("depends-on-length", f"the same tokens come out up to {off:.3g} apart", off)


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(q: Encoding) -> Answer:
    """Does every position receive a row of its own, also beyond the length it is built for?"""
    line, table, refused = q.far
    if (found := rows.beyond(table, torch.tensor(line), q.what)) is not None:
        on_grid = getattr(q.view, "grid", None) and found.name != "not-a-number"
        return fault("positions-shared", found.said, found.number) if on_grid else found
    if isinstance(refused, FewerRowsError):
        return fault("truncated-silently", f"{refused}, without a word", line[-1] + 1)
    ends = f"; beyond {line[-1]:,} it refuses ({str(refused)[:80]})" if refused else ""
    return f"{len(line):,} positions to {line[-1]:,}, all different{ends}"


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(q: Encoding) -> Answer:
    """Does one token behind a cache receive what it does in the whole row?"""
    if isinstance(q, RotaryInquiry) and (other := decodes_otherwise(q)) is not None:
        return other
    needed(q.view.moves, "the first position cannot be said")
    line, x = torch.tensor(DECODED), q.content(9, seed=3)
    few, whole = x[..., line, :], q.whole(x)[..., line, :]
    off = apart(_alone(q, few, line), whole)
    if off < ROUNDING:
        return f"{off:.1g} apart to position {DECODED[-1]}"
    for shift, sign in ((1, "−"), (-1, "+")):
        if apart(_alone(q, few[..., 2:, :], line[2:] + shift), whole[..., 2:, :]) < ROUNDING:
            return fault("off-by-one-after-cache", f"token p receives what p {sign} 1 does", off)
    return fault("decoding-differs-from-prefill", f"tokens alone are {off:.3g} away", off)


def _alone(q: Encoding, x: Tensor, line: Tensor) -> Tensor:
    """What tokens at some positions come to, each in a call of its own."""
    return torch.cat([q.whole(x[..., [i], :], line[[i]]) for i in range(len(line))], -2)


@question(after=(*NO_PLACE, "truncated-silently"))
def reads_every_position(q: Encoding) -> Answer:
    """Does each token receive what its own position means: several at once, far, in any order?"""
    words = "away from what each of these positions means"
    answer = compared(_said_otherwise(q), "positions-misread", words)
    return answer if isinstance(answer, Fault) or not q.view.moves else _over_the_edge(q) or answer


def _said_otherwise(q: Encoding) -> Iterator[Way]:
    """By other parameters, several at once, and not at all."""
    view, three, x = q.view, torch.arange(5, 8), q.content(8)
    unsaid = q.otherwise(view.unsaid or view.run)

    def by_another(run: Any) -> tuple[Tensor, Tensor]:
        return q.otherwise(run).whole(x[..., three, :], three), unsaid.whole(x)[..., three, :]

    def together(line: Tensor) -> tuple[Tensor, Tensor]:
        few = q.content(len(line))
        return q.whole(few, line), _alone(q, few, line)

    for name, run in view.others if view.unsaid else ():  # else both are said at once
        yield f"three tokens from 5 on, said by {name}", ROUNDING, partial(by_another, run)
    if not view.moves:
        return
    firsts = [p for p in (5, 50, 130, 1000, q.end - 3) if 0 <= p <= q.end - 3]
    anyhow = [[7, 3, 19, 3, 0], [q.end - 1, 2, q.end // 2]] if view.moves != "offset" else []
    for line in map(torch.tensor, [*([p, p + 1, p + 2] for p in firsts), *anyhow]):
        allowed = ROUNDING if int(line.max()) < 20 else 1e-3
        yield f"tokens at {line.tolist()} together", allowed, partial(together, line)
    if view.unsaid:
        count = max(1, min(q.end, 2**22 // q.content(1).numel()))
        both = lambda: (unsaid.whole(q.content(count)), q.whole(q.content(count)))  # noqa: E731
        yield f"{count:,} tokens without positions", ROUNDING, both


def _over_the_edge(q: Encoding) -> Answer | None:
    """A fault where one token at the end of a table, or two across it, are answered wrongly."""
    # a slice that ends there is shorter than the tokens, and joins them where either is one
    said = lengths_of(q.view.subject.fresh())
    for edge in dict.fromkeys((q.far[0][-1] + 1, *said[:1])):
        for first, count in ((edge, 1), (edge - 1, 2), (edge, 2)):
            x, line = torch.ones_like(q.content(count)), torch.arange(first, first + count)
            try:
                made = q.called(x, line)
                if count == 1 or any(apart(m[..., 0, :], m[..., 1, :]) for m in made):
                    continue
            except FewerRowsError:
                pass
            except NotAskedError:
                continue
            told = f"{count} from position {first:,} on do not receive {count} rows, without a word"
            return fault("truncated-silently", told, edge)
    return None


@question(after=(*NO_LENGTH, *NO_STATE, "depends-on-how-it-is-given", "positions-misread"))
def rows_have_their_own_positions(q: Encoding) -> Answer:
    """In a batch with padding on the left, does each row get what its own positions mean?"""
    by_row = q.view.moves in ("rows", "positions") and q.view.layout not in ONE_ROW
    needed(by_row, "positions cannot be said for each row")
    name, words, ways = "padding-shifts-positions", "away from these rows alone", []

    def both(x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        return q.whole(x, at), torch.cat(list(map(q.whole, x.split(1), at.split(1))))

    for starts, count in PADDED:
        x, at = q.content(count, len(starts), seed=4), starts[:, None] + torch.arange(count)
        said = f"rows of {count} tokens from {starts.tolist()} on"
        ways.append((said, ROUNDING, partial(both, x, at)))
        with suppress(NotAskedError):
            alike = q.called(x[:1].expand_as(x), at)  # equal rows, wherever they begin
            if any(not apart(side, side[:1].expand_as(side)) for side in alike):
                name, words = "first-row-for-all", "away: all stand where the first does"
    return compared(ways, name, words)


# How precise positions are, and in 16 bits.


@question(after=NO_PLACE)
def is_precise(q: Encoding) -> Answer:
    """Up to the length that counts, is it what exact arithmetic gives?"""
    line, errors, moved, rounded, held = q.errors_to_the_end()
    off = errors.abs().amax(1)
    last, worst = int(line[-1]), off.max().item()
    q.errors |= {p: off[line <= p].max().item() for p in (*q.marks, last) if p <= last}
    if rounded:
        return fault("frequencies-in-16-bits", f"kept in {rounded}: {worst:.3g} off", worst)
    if held:
        return fault("table-in-16-bits", f"every number is one of {held}: {worst:.3g} off", worst)
    if (first := rows.parting(line, off)) is not None:
        p, near, far = int(line[first]), off[:first].max(), off[first]
        said = f"up to {near:.3g} off before position {p:,}, but {far:.3g} there"
        return fault("far-positions-otherwise", said, p)
    if moved.max() > q.lossy:
        first = int(line[moved > q.lossy][0])
        said = f"from position {first:,} on {q.words} too much, by up to {moved.max():.3g}"
        return fault("precision-lost", said, worst)
    return f"up to {worst:.1g} off to position {last:,}; {q.words} by {moved.max():.1g}"


@question(after=(*NO_NUMBER, "first-dtype-cached"))
def survives_a_cast(q: Encoding) -> Answer:
    """After ``.bfloat16()``, is it as good as rounding once makes it?"""
    module = q.view.subject.fresh()
    needed(isinstance(module, nn.Module), "it is no module")
    needed(not q.learns, "it has parameters, which a cast must round")
    said = "after .bfloat16() a token at {} is {:.3g} off; one rounding costs 0.004"
    return _rounded_once(q, "cast-breaks-it", said, q.far_rows(torch.bfloat16, module.bfloat16()))


@question(after=NO_NUMBER)
def survives_autocast(q: Any) -> Answer:
    """Inside autocast to bfloat16, is float32 content given what it is outside of it?"""
    view, built = q.view, q.view.subject.fresh()
    is_table = view.scale is None if view.kind == "added" else view.applied
    early = is_table and isfunction(unbound(built))
    needed(not early, "a function that gives a table may be called before autocast begins")
    with torch.autocast("cpu", torch.bfloat16):
        made = q.far_rows(by=built)
    return _rounded_once(q, "autocast-breaks-it", "in autocast a token at {} is {:.3g} off", made)


@question(after=NO_NUMBER)
def keeps_positions_in_16_bits(q: Encoding) -> Answer:
    """Are bfloat16 queries turned as float32 ones are, up to their own rounding?"""
    said = "in bfloat16 a token at {} is {:.3g} off: positions or angles are held in 16 bits"
    answer = _rounded_once(q, "positions-in-16-bits", said, q.far_rows(torch.bfloat16))
    came = q.whole(q.content(q.most(2)).bfloat16()).dtype
    if isinstance(answer, str) and came != torch.bfloat16 and getattr(q.view, "scale", 1.0):
        return fault("dtype-changed", f"bfloat16 content comes back as {came}")
    return answer


def _rounded_once(q: Encoding, name: str, said: str, made: list[Tensor]) -> Answer:
    """A fault of digits, or of order where neighbors receive the same that need not."""
    exact = q.far_rows()
    sizes = (each.abs().amax(1).clamp(min=1e-30) for each in exact)
    shares = [(x - y).abs().amax(1) / size for x, y, size in zip(made, exact, sizes, strict=True)]
    off, row = torch.stack(shares).amax(0).nan_to_num(torch.inf).max(0)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {q.below[-1]:,}, as one rounding is"
    said, alike = said.format(f"{q.below[row]:,}", off), max(map(rows.lost_neighbors, made, exact))
    if not alike:
        return fault(name, said, off.item())
    return fault(name, f"{said}; {alike} neighbors receive the same", off.item(), severity="wrong")
