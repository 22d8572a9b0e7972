"""Cosines and sines that are applied to queries and keys by another function, or by nobody yet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import Call, as_tensor, calls, calls_of, first_answer
from posenc.audit.adapters.rotary_view import Both, RotaryView, Run
from posenc.audit.applied import applies
from posenc.audit.report import CallFailedError
from posenc.audit.signatures import parameters_of
from posenc.audit.subjects import Subject
from posenc.encodings.queries_keys import Rotary

Table = tuple[Tensor, Tensor | None]
"""Cosines and sines ``[batch, seq, width]``, or complex numbers and None."""

Rows = Callable[[Any, Tensor, Tensor], Table]
"""From a copy, content ``[batch, heads, seq, head_dim]`` and positions ``[batch, seq]``."""

ROLES = {"x", "positions", "length", "dim", "offset", "base", "dtype"}
"""What is known of a function that gives cosines and sines."""

BUILDERS = ("precompute", "freqs_cis", "build_rope", "rope_cache", "rotary_table", "cos_sin")

SHAPES: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda t: t,  # [batch, seq, width]
    lambda t: t[0],  # [seq, width]
    lambda t: t[:, None],  # [batch, 1, seq, width]
    lambda t: t[:, :, None],  # [batch, seq, 1, width]
    lambda t: t[0][:, None, None],  # [seq, 1, 1, width]
    lambda t: t[0][:, None],  # [seq, 1, width]
)


@dataclass(frozen=True)
class Source:
    """Where cosines and sines come from."""

    rows: Rows
    text: str  # how they are called, as Python
    moves: str  # how positions are said
    fed: bool = False  # whether they are ours


@dataclass(frozen=True)
class Applier:
    """A function that applies cosines and sines."""

    text: str  # how it is called
    call: Callable[[Any, dict[str, Any]], Any]  # from a copy and values by their roles
    roles: frozenset[str | None]
    words: str = ""  # whose it is, in words; empty for the subject itself


def applied_views(
    subject: Subject, said: str | None, widths: tuple[int, ...]
) -> Iterator[RotaryView]:
    """Every pair of a source of cosines and a function that applies them, in every shape."""
    thing = subject.fresh()
    appliers = list(_appliers(subject, thing))
    orders = (said,) if said else ("bhsd", "bshd", "sbhd", "bsd", "thd")
    for source, applier in product(_sources(subject, thing), appliers):
        if source.fed and applier.words:
            continue
        for layout, shape, dim, kv_heads in product(orders, SHAPES, widths, (2, 4)):
            run = _runner(source, applier, layout, shape)
            yield RotaryView(
                subject, run, f"{applier.text}({source.text})", dim, layout, said is not None,
                source.moves, {"q", "k"} <= applier.roles, kv_heads, applied=applier.words,
                fed=source.fed,
            )  # fmt: skip


def _sources(subject: Subject, thing: Any) -> Iterator[Source]:
    """Where the cosines of this subject come from: itself, its module, or us."""
    if not {p.role for p in parameters_of(thing)} & {"cos", "cis"}:
        for call in calls_of(thing):
            yield from _own(call)
        return
    for name, function in subject.namespace.items():
        builds = any(word in name.lower() for word in BUILDERS) and not name.startswith("apply")
        if builds and callable(function) and not isinstance(function, type | nn.Module):
            for call in calls(name, lambda _, f=function: f, function):
                yield from _own(call)
    for form in ("half", "interleaved", "pairs"):
        yield Source(_ours(form), f"exact cosines and sines, {form}", "rows", fed=True)


def _own(call: Call) -> Iterator[Source]:
    if not call.required <= ROLES:
        return
    if "positions" in call.roles:
        yield Source(_by_positions(call.using("positions")), f"{call.name}(positions)", "rows")
    if "length" in call.roles or "x" in call.required:
        uses = ("length",) if "x" in call.required else ("length", "dim")
        yield Source(_by_length(call.using(*uses)), f"{call.name}(length)", "rows")
    if "positions" not in call.required and "x" in call.required:
        yield Source(_by_length(call.using()), f"{call.name}(x)", "")


def _by_positions(call: Call) -> Rows:
    def rows(thing: Any, x: Tensor, positions: Tensor) -> Table:
        values = {"x": x, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4}

        def at(some: Tensor) -> Table:
            if some.ndim == 1 and bool((positions != positions[:1]).any()):
                raise CallFailedError("rows of a batch cannot have positions of their own")
            made = call(thing, {**values, "positions": some})
            is_table = isinstance(made, Tensor) and made.shape[:-1] == some.shape
            if is_table and not made.is_complex():
                raise CallFailedError("it gives one table, not cosines and sines")
            return _table(made, positions, False)

        return first_answer(
            lambda some=some: at(some) for some in (positions, positions[0], positions.float())
        )

    return rows


def _by_length(call: Call) -> Rows:
    says_length = "length" in call.said
    call_ = call.using(*(role for role in call.uses if role in call.roles))

    def rows(thing: Any, x: Tensor, positions: Tensor) -> Table:
        length = int(positions.max()) + 1
        if not says_length and x.shape[2] < length:
            raise CallFailedError("its positions cannot be said")
        if length * x.shape[-1] > 2**25:
            raise CallFailedError(f"a table of {length:,} rows is too long to be asked")
        if says_length and "length" not in call.roles and x.shape[2] < length:
            x = x[:, :, :1].expand(-1, -1, length, -1)  # as long as its content
        values = {
            "length": length, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4, "offset": 0,
        }  # fmt: skip

        def of(order: str) -> Table:
            made = call_(thing, {**values, "x": layouts.laid_out(x, order)})
            return _table(made, positions, True)

        orders = ("bhsd", "bshd") if "x" in call.roles else ("bhsd",)
        return first_answer(lambda order=order: of(order) for order in orders)

    return rows


def _table(made: Any, positions: Tensor, by_row: bool) -> Table:
    """What came as rows ``[batch, seq, width]``; ``by_row`` when row p is that of position p."""
    made = as_tensor(made)
    parts = list(made) if isinstance(made, tuple | list) else [made]
    if not 1 <= len(parts) <= 2 or not all(isinstance(p, Tensor) for p in parts):
        raise CallFailedError(f"it gives {type(made).__name__}, no cosines and sines")
    if len(parts) == 1 and not parts[0].is_complex():
        parts = _split(parts[0])
    if len(parts) == 2 and (parts[0].shape != parts[1].shape or parts[0].is_complex()):
        raise CallFailedError("it gives two tensors of different shapes")
    found = [_rows(part, positions, by_row) for part in parts]
    if len(found) == 1:
        return found[0], None
    if bool((found[0].double().square() + found[1].double().square() > 16).any()):
        raise CallFailedError("it gives no cosines and sines")
    return found[0], found[1]


def _split(part: Tensor) -> list[Tensor]:
    """cos and sin kept together: stacked last, or one after the other (vLLM's cos_sin_cache)."""
    for axis in (-1, 0):
        if part.ndim >= 3 and part.shape[axis] == 2:
            return list(part.unbind(axis))
    raise CallFailedError("it gives one table, not cosines and sines")


def _rows(part: Tensor, positions: Tensor, by_row: bool) -> Tensor:
    while part.ndim > 2 and part.shape[0] == 1 and (part.ndim > 3 or by_row):
        part = part[0]
    while part.ndim > 2 and by_row and part.shape[1] == 1:  # GPT-NeoX: [seq, 1, 1, width]
        part = part[:, 0]
    if part.ndim == 2 and by_row:
        if len(part) <= int(positions.max()):
            raise CallFailedError(f"its table ends at {len(part)} positions")
        return part[positions]
    if part.ndim == 2:
        part = part[None].expand(len(positions), -1, -1)
    if part.ndim != 3 or part.shape[:2] != positions.shape:
        raise CallFailedError(f"its cosines have the shape {tuple(part.shape)}")
    return part


def _ours(form: str) -> Rows:
    """Exact cosines and sines, for a function that only applies them."""

    def rows(_thing: Any, x: Tensor, positions: Tensor) -> Table:
        cos, sin = Rotary(x.shape[-1]).table(positions).unbind(-2)
        if form == "half":
            return _twice(cos), _twice(sin)
        if form == "interleaved":
            return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        return cos, sin

    return rows


def _appliers(subject: Subject, thing: Any) -> Iterator[Applier]:
    """Functions that apply tables: the subject itself, one beside it, or ours at the end."""
    own = Call("subject", lambda thing: thing, tuple(parameters_of(thing)))
    if own.roles & {"cos", "cis"}:
        yield Applier("subject", _taking(own), own.required)
        return
    beside = []
    for name, function in subject.namespace.items():
        if applies(name) and callable(function):
            call = next(calls(name, lambda _, f=function: f, function), None)
            if call and call.roles & {"x", "q"} and call.roles & {"cos", "cis"}:
                beside.append(call)
    one = ", one of several" if len(beside) > 1 else ""
    for call in beside:
        words = f"applied by {call.name} beside it{one}"
        yield Applier(call.name, _taking(call), call.required, words)
    words = "it gives cosines and sines; how they are applied was not seen"
    yield Applier("rotated", _plainly, frozenset(), words)


def _taking(call: Call) -> Callable[[Any, dict[str, Any]], Any]:
    """A call with cosines and sines, or with complex numbers made of them."""

    def applied(thing: Any, values: dict[str, Any]) -> Any:
        first, second = values["cos"], values["sin"]
        if ("cis" in call.required) != (second is None):
            if second is None:
                raise CallFailedError("it takes cosines and sines, not complex numbers")
            first = torch.complex(first.float(), second.float())
        return call(thing, {**values, "cos": first, "cis": first})

    return applied


def _plainly(_thing: Any, values: dict[str, Any]) -> Any:
    """The usual application: by halves, or by neighbors where values stand twice side by side."""
    x, cos, sin = values["x"], values["cos"], values["sin"]
    by_neighbors = sin is None  # complex numbers multiply neighbors
    if sin is None:
        cos, sin = cos.real, cos.imag
    if cos.shape[-1] * 2 == x.shape[-1]:
        twice = (lambda t: t.repeat_interleave(2, -1)) if by_neighbors else _twice
        cos, sin = twice(cos), twice(sin)
    elif by_neighbors or cos.shape[-1] != x.shape[-1]:
        raise CallFailedError("its cosines have another width than heads")
    else:
        by_neighbors = torch.equal(cos[..., 0::2], cos[..., 1::2]) and cos.shape[-1] > 2
    if by_neighbors:
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        turned = torch.cat((-b, a), -1)
    return (x * cos + turned * sin).to(x.dtype)


def _twice(t: Tensor) -> Tensor:
    return torch.cat((t, t), -1)


def _runner(
    source: Source, applier: Applier, layout: str, shape: Callable[[Tensor], Tensor]
) -> Run:
    pairs = {"q", "k"} <= applier.roles

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        first, second = source.rows(thing, q, positions)
        if shape(first).ndim < first.ndim and bool((positions != positions[:1]).any()):
            raise CallFailedError("it takes one position a token, for all rows alike")
        if applier.call is _plainly:
            cos, sin = (None if t is None else t[:, None] for t in (first, second))
            return _plainly(thing, {"x": q, "cos": cos, "sin": sin}), None
        x = layouts.laid_out(q, layout)
        values = {
            "cos": shape(first), "sin": None if second is None else shape(second),
            "q": x, "x": x, "k": layouts.laid_out(k if pairs else q, layout),
        }  # fmt: skip
        return layouts.both_taken_back(applier.call(thing, values), pairs, layout, q, k)

    return run
