"""What ``posenc parity`` says in words."""

from math import inf

from posenc.audit.differences import Difference
from posenc.audit.parity import Parity


def lines(found: Parity) -> list[str]:
    """The text, a line for each thing."""
    made = [f"A  {found.a[0]}: {found.a[1]}", f"B  {found.b[0]}: {found.b[1]}"]
    made += [f"of {found.encoding}"] if found.encoding else []
    made += [f"note: {note}" for note in found.notes]
    made += [_told(stage) for stage in found.stages]
    for part in (found.q, found.k):
        ones = f", {part.by_one:,} of these by 1 ulp of {found.dtype}"
        far = "" if part.is_none else f" ({part.largest:.3g} at most{ones})"
        made.append(_told(part) + far)
    where = f"positions 0 to {found.length - 1:,}, {found.dtype}"
    if found.is_equal:
        return [*made, f"Equal bits: {found.a[0]} and {found.b[0]}, {where}."]
    made += [
        f"attention over {each.content}: a score moves by up to {each.score:.2g} (their spread "
        f"is {each.spread:.2g}), a weight by up to {each.weight:.2g}; KL up to "
        f"{each.divergence:.2g}"
        for each in found.effects
    ]
    first = min(map(_place, (found.q, found.k)))
    if found.stages:
        table = found.stages[-1]
        if not table.is_none:
            made.append("The tables differ: load one on both sides (--write FILE --table FORM).")
        if first < _place(table):
            made.append(
                "Where tables are equal, products and sums are rounded differently: rotate in "
                "float32 on both sides, or in the dtype of content on both."
            )
    elif any(each.score > each.spread / 2 for each in found.effects):
        made.append(
            "That is more than rounding: bases, schedules or pairings differ, or frequencies are "
            "held in too few bits. `posenc check` says what each side is."
        )
    return [*made, f"Bits differ from position {first[0]:,} on ({where})."]


def _place(part: Difference) -> tuple[float, float]:
    """The first position and pair that differ; none is behind all."""
    if part.position is None or part.pair is None:
        return inf, inf
    return part.position, part.pair


def _told(part: Difference) -> str:
    if part.is_none or part.values is None:
        return f"{part.name}: equal bits"
    a, b = part.values
    return (
        f"{part.name}: {part.count:,} of {part.total:,} ({part.count / part.total:.2%}) differ, "
        f"first at position {part.position:,}, pair {part.pair}: {a:.9g} and {b:.9g}"
    )
