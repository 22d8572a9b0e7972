"""Questions to all that encodes positions: what calls leave behind, and how precise they are."""

from collections.abc import Iterator
from inspect import isfunction
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.questions import rows
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_NUMBER,
    NO_PLACE,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.inquiry import ROUNDED, Inquiry
from posenc.audit.questions.traces import after_calls, apart, gradients, untouched
from posenc.audit.questions.ways import CHANCE, Way, alike, by_chance, training
from posenc.audit.report import Fault, NotAskedError
from posenc.audit.signatures import unbound


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
        ("state-between-calls", other // 2, torch.float32, other),
        ("first-dtype-cached", seq, torch.bfloat16, seq),
        ("first-dtype-cached", seq, torch.float16, seq),
    ]
    call = lambda seq, dtype, by: q.made(q.content(seq).to(dtype), by=by)  # noqa: E731
    cases = [case for case in cases if case[3] >= seq and (case[1] == seq or not q.view.fixed)]
    state = _after_other_positions(q, q.most(23))
    return state or after_calls(call, q.view.subject.fresh, cases)


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
        jumps = bool((before.diff() != 1).any() | (then.diff() != 1).any())
        if (q.view.moves == "offset" and jumps) or (len(then) > 1 and not q.by_rows):
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


@question(after=(*NO_LENGTH, *NO_STATE, "gradient-cut"))
def same_however_it_is_given(q: Inquiry) -> Answer:
    """Do tokens get the same in larger batches, in training and in other dtypes?"""
    answer = ""
    for side in q.sides:
        x = q.sample()
        plain = q.made(x, side=side)
        ways = (*_ways(q, x, plain, side), *q.own_ways(x, plain, side))
        said = alike(ways, max(1.0, (x if x.any() else plain).abs().max().item()))
        if not isinstance(said, str):
            return said
        answer = answer or said
    return answer


def _ways(q: Inquiry, x: Tensor, plain: Tensor, side: str) -> Iterator[Way]:
    def batch(size: int) -> tuple[Tensor, Tensor]:
        whole, wanted = (
            torch.cat((t, t[:1].expand(size - len(x), *t.shape[1:]))) for t in (x, plain)
        )
        return q.made(whole, side=side), wanted

    def narrow(dtype: torch.dtype, rows: int | None = None) -> tuple[Tensor, Tensor]:
        return q.made(x.to(dtype), side=side)[..., :rows, :], plain[..., :rows, :]

    yield "in a batch of 3", q.dense, lambda: batch(3)
    yield "in a batch of 5", q.dense, lambda: batch(5)
    yield "in float64", q.wide, lambda: narrow(torch.float64)
    yield "in float16", max(q.wide, q.in_float16), lambda: narrow(torch.float16)
    # of later tokens, positions in 16 bits are a loss, which is asked for elsewhere
    yield "in bfloat16", max(q.wide, ROUNDED), lambda: narrow(torch.bfloat16, 3)
    thing = q.view.subject.fresh()
    if isinstance(thing, nn.Module):
        thing, drawn = training(thing), q.drawn(x)
        chance = by_chance(lambda: q.made(drawn, by=thing, side=side))
        trained = lambda: (q.made(drawn, by=thing, side=side), q.made(drawn, side=side))  # noqa: E731
        yield CHANCE if chance else "in training", q.dense, trained


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
    made = q.far_rows(torch.bfloat16, module.bfloat16())[1]
    off, row = q.farthest(made, exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    said = f"after .bfloat16() a token at {at[row]:,} is {off:.3g} off; one rounding costs 0.004"
    return _lost("cast-breaks-it", said, off, made, exact)


@question(after=NO_NUMBER)
def survives_autocast(q: Inquiry) -> Answer:
    """Inside autocast to bfloat16, is float32 content given what it is outside of it?"""
    thing = q.view.subject.fresh()
    if q.gives_tables and isfunction(unbound(thing)):
        raise NotAskedError("a function that gives a table may be called before autocast begins")
    (at, exact), built = q.far_rows(), q.view.subject.fresh()
    with torch.autocast("cpu", torch.bfloat16):
        made = q.far_rows(by=built)[1]
    off, row = q.farthest(made, exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}"
    said = f"inside torch.autocast a token at {at[row]:,} is {off:.3g} off: angles by a product of"
    said += " matrices are rounded with the layers around"
    return _lost("autocast-breaks-it", said, off, made, exact)


def _lost(name: str, said: str, off: float, made: list[Tensor], exact: list[Tensor]) -> Fault:
    """A fault of digits, or of order where neighbors receive the same that need not."""
    alike = max(map(rows.lost_neighbors, made, exact))
    if not alike:
        return fault(name, said, off)
    return fault(name, f"{said}; {alike} neighbors receive the same", off, severity="wrong")


@question(after=NO_NUMBER)
def keeps_16_bits(q: Inquiry) -> Answer:
    """Are bfloat16 inputs given what float32 ones are, up to their own rounding?"""
    at, exact = q.far_rows()
    made = q.far_rows(torch.bfloat16)[1]
    off, row = q.farthest(made, exact)
    if off >= ROUNDED or (q.counts_rows and rows.lost_rows(made[0], exact[0])):
        said = f"in bfloat16 a token at {at[row]:,} is {off:.3g} off: positions or angles are held"
        return _lost("positions-in-16-bits", f"{said} in 16 bits", off, made, exact)
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
