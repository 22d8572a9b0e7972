"""What ``posenc parity`` prints."""

import json
import sys
import textwrap
from math import inf

from posenc.audit.comparing.differences import Difference
from posenc.audit.comparing.effects import Effect
from posenc.audit.parity import Parity

WIDTH = 98


def show(found: Parity, form: str, written: list[str]) -> None:
    """The comparison on standard output, as text or as JSON."""
    if form == "json":
        json.dump(found.as_dict() | {"written": written}, sys.stdout, indent=1)
        sys.stdout.write("\n")
        return
    for line in (*lines(found), *written):
        print(
            textwrap.fill(
                line,
                WIDTH,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        )


def lines(found: Parity) -> list[str]:
    """The text, a line for each thing."""
    made = [f"A  {found.a[0]}: {found.a[1]}", f"B  {found.b[0]}: {found.b[1]}"]
    if found.encoding:
        made.append(f"of {found.encoding}")
    made += [f"note: {note}" for note in found.notes]
    made += [_stage(stage) for stage in found.stages]
    made += [_content(part, found.dtype) for part in (found.q, found.k)]
    made += [_effect(each) for each in found.effects if not found.is_equal]
    where = f"positions 0 to {found.length - 1:,}, {found.dtype}"
    if found.is_equal:
        return [*made, f"Equal bits: {found.a[0]} and {found.b[0]}, {where}."]
    first = min(found.q.position or 0, found.k.position or 0)
    if found.q.position is None or found.k.position is None:
        first = (found.q if found.k.position is None else found.k).position or 0
    return [*made, *_advice(found), f"Bits differ from position {first:,} on ({where})."]


def _advice(found: Parity) -> list[str]:
    if not found.stages:
        return []
    table = found.stages[-1]
    arithmetic = "Rotate in float32 on both sides, or in the dtype of content on both."
    if table.is_none:
        return [f"The tables are equal: products and sums are rounded differently. {arithmetic}"]
    load = "load one on both sides (--write FILE --table FORM)."
    if not any(_place(part) < _place(table) for part in (found.q, found.k)):
        return [f"The tables differ: {load}"]
    return [
        f"The tables differ, and where they are equal products and sums are rounded differently: "
        f"{load} {arithmetic}"
    ]


def _place(part: Difference) -> tuple[float, float]:
    """The first position and pair that differ; none is behind all."""
    if part.position is None or part.pair is None:
        return inf, inf
    return part.position, part.pair


def _stage(part: Difference) -> str:
    if part.is_none:
        return f"{part.name}: equal bits"
    return f"{part.name}: {_share(part)} differ, first {_first(part)}"


def _content(part: Difference, dtype: str) -> str:
    if part.is_none:
        return f"{part.name}: equal bits"
    ones = f"{part.by_one:,} of these by 1 ulp"
    return (
        f"{part.name}: {_share(part)} differ ({ones} of {dtype}, the farthest by "
        f"{part.largest:.3g}), first {_first(part)}"
    )


def _share(part: Difference) -> str:
    return f"{part.count:,} of {part.total:,} ({part.count / part.total:.2%})"


def _first(part: Difference) -> str:
    assert part.values is not None
    a, b = part.values
    return f"at position {part.position:,}, pair {part.pair}: {a:.9g} and {b:.9g}"


def _effect(each: Effect) -> str:
    return (
        f"attention over {each.content}: a score moves by up to {each.score:.2g} (their spread is "
        f"{each.spread:.2g}), a weight by up to {each.weight:.2g}; KL up to {each.divergence:.2g}"
    )
