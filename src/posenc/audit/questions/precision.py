"""Questions to all that encodes positions: how precise they are, and in 16 bits."""

from inspect import isfunction
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.questions import rows
from posenc.audit.questions.asking import ROUNDED, Answer, needed, question
from posenc.audit.questions.faults import NO_NUMBER, NO_PLACE, fault
from posenc.audit.questions.order import Encoding
from posenc.audit.signatures import unbound


@question(after=NO_PLACE)
def is_precise(q: Encoding) -> Answer:
    """Up to the length that counts, is it what exact arithmetic gives?"""
    line, errors, rounded, held = q.errors_to_the_end()
    off, moved = errors.abs().amax(1), q.moved(errors)
    last, worst = int(line[-1]), off.max().item()
    q.errors |= {p: off[line <= p].max().item() for p in (*q.marks, last) if p <= last}
    if rounded:
        return fault("frequencies-in-16-bits", f"of {rounded}: up to {worst:.3g} off", worst)
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
    sides = list(zip(made, q.far_rows(), strict=True))
    shares = [(x - y).abs().amax(1) / y.abs().amax(1).clamp(min=1e-30) for x, y in sides]
    off, row = torch.stack(shares).amax(0).nan_to_num(torch.inf).max(0)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {q.below[-1]:,}, as one rounding is"
    said = said.format(f"{q.below[row]:,}", off)
    alike = max(rows.lost_neighbors(*side) for side in sides)
    if not alike:
        return fault(name, said, off.item())
    said = f"{said}; {alike} neighbors receive the same"
    return fault(name, said, off.item(), severity="wrong")
