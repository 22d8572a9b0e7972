"""``posenc parity``: two rotary implementations compared bit by bit, and what it says in words."""

import json
from math import inf
from typing import Any

import torch
from safetensors.torch import save

from posenc import audit
from posenc.audit.differences import Difference
from posenc.cli.errors import UserError, check_heeded, close
from posenc.cli.files import check, config_in, placed
from posenc.cli.printing import print_folded, print_json
from posenc.cli.work.check import named_by, printed_aside
from posenc.encodings.expression import encoding_from
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.interop.rotary_config import rotary_from_config
from posenc.interop.serving import engine_table
from posenc.numerics.arithmetic import PROFILES


def parity(asked: Any) -> int:
    """Compares, prints, and says by the status whether bits differ."""
    encoding, names = _encoding(asked), (asked.a, asked.b)
    for name in names:
        if ":" not in name and name not in PROFILES:
            known = close(name, PROFILES)
            raise UserError(f"{name!r} is no profile, MODULE:NAME or model:PATH{known}")
    if asked.write is not None:
        kinds = (".pt",) if asked.table == "complex" else (".safetensors", ".pt")
        check(asked.write, *kinds, weights=asked.weights, config=asked.config)
    same = ("layer_type", "length", "weights", "layer", "seed")
    given: dict[str, Any] = {name: getattr(asked, name) for name in same}
    of = {"config": config_in(asked.config)} if asked.config else {"encoding": encoding}
    said = {"arguments": json.loads(asked.arguments), "layout": asked.layout, "call": asked.call}
    dtype = getattr(torch, asked.dtype)
    with printed_aside():
        try:
            sides = (name if name in PROFILES else named_by(name) for name in names)
            found = audit.parity(*sides, dtype=dtype, said=said, names=names, **of, **given)
        except audit.CannotCheckError as reason:
            raise UserError(f"could not compare {asked.a} with {asked.b}: {reason}") from None
    written = [_written(asked, encoding, found.length)] if asked.write else []
    if asked.format == "json":
        print_json(found.as_dict(), written=written)
    else:
        print_folded([*_lines(found), *written])
    return found.status


def _encoding(asked: Any) -> Rotary | None:
    check_heeded(asked, encoding=asked.config and "beside --config")
    if asked.write and not (asked.config or asked.encoding):
        raise UserError("--write needs --config or --encoding")
    if asked.config:
        path, kind = config_in(asked.config), asked.layer_type
        found: Any = rotary_from_config(path, layer_type=kind, length=asked.length)
        found = found.rotary if isinstance(found, MultimodalRotary) else found
    else:
        found = encoding_from(asked.encoding) if asked.encoding else None
    if not isinstance(found, Rotary | None):
        raise UserError(f"{found!r} is no Rotary; the profiles know no other encoding")
    return found


def _written(asked: Any, encoding: Any, length: int) -> str:
    wide = torch.float32 if asked.table == "complex" else getattr(torch, asked.dtype)
    made = engine_table(encoding, length, asked.table, wide)
    with placed(asked.write) as file:
        if asked.write.suffix == ".pt":
            torch.save(made, file)
        else:
            file.write(save(made))
    shapes = ", ".join(f"{name} {list(x.shape)} {x.dtype}" for name, x in made.items())
    return f"wrote {asked.write}: {shapes}".replace("torch.", "")


def _lines(found: audit.Parity) -> list[str]:
    """The report, a line for each thing."""
    made = [f"A  {found.a[0]}: {found.a[1]}", f"B  {found.b[0]}: {found.b[1]}"]
    made += [f"of {found.encoding}"] if found.encoding else []
    made += [f"note: {note}" for note in found.notes]
    made += [_told(stage) for stage in found.stages]
    for part in (found.q, found.k):
        ones = f"{part.by_one:,} of these by 1 ulp of {found.dtype}"
        most = "" if part.is_none else f" ({part.largest:.3g} at most, {ones})"
        made.append(_told(part) + most)
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
    return (part.position, part.pair or 0) if part.position is not None else (inf, inf)


def _told(part: Difference) -> str:
    if part.values is None:
        return f"{part.name}: equal bits"
    a, b = part.values
    return (
        f"{part.name}: {part.count:,} of {part.total:,} ({part.count / part.total:.2%}) differ, "
        f"first at position {part.position:,}, pair {part.pair}: {a:.9g} and {b:.9g}"
    )
