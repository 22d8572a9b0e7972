"""Cosines and sines that are applied to queries and keys by another function, or by nobody yet."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import Call, calls, calls_of, first_answer
from posenc.audit.report import CallFailedError
from posenc.audit.signatures import applies, parameters_of
from posenc.audit.subjects import Subject
from posenc.encodings.queries_keys import Rotary

# Cosines and sines [batch, seq, width], or complex numbers and None.
Table = tuple[Tensor, Tensor | None]
# From a copy, content [batch, heads, seq, head_dim] and positions [batch, seq].
Rows = Callable[[Any, Tensor, Tensor], Table]
# From positions [*, seq] to the points of a grid that they number.
Points = Callable[[Tensor], Tensor]

# What is known of a function that gives cosines and sines, and words of its name.
ROLES = {"x", "positions", "length", "dim", "offset", "base", "dtype"}
BUILDERS = ("precompute", "freqs_cis", "build_rope", "rope_cache", "rotary_table", "cos_sin")

# How they lie beside content.
Shape = Callable[[Tensor], Tensor]
SHAPES: tuple[Shape, ...] = (
    lambda t: t,  # [batch, seq, width]
    lambda t: t[0],  # [seq, width]
    lambda t: t[:, None],  # [batch, 1, seq, width]
    lambda t: t[:, :, None],  # [batch, seq, 1, width]
    lambda t: t[0][:, None, None],  # [seq, 1, 1, width]
    lambda t: t[0][:, None],  # [seq, 1, width]
)

# How often values stand for the two channels of a pair.
FORMS: dict[str, Shape] = {
    "half": lambda t: torch.cat((t, t), -1),
    "interleaved": lambda t: t.repeat_interleave(2, -1),
    "pairs": lambda t: t,
}

ORDERS = ("bhsd", "bshd", "sbhd", "bsd", "thd")
UNSEEN = "it gives cosines and sines; how they are applied was not seen"


@dataclass(frozen=True)
class Way:
    """One way to call something, at positions that are said or applied."""

    call: Call
    moves: str
    # from a copy, queries, positions [batch, seq] and a layout: what is said beside content
    beside: Callable[[Any, Tensor, Tensor, str], dict[str, Any]]
    orders: tuple[str, ...] = layouts.LAYOUTS
    applied: str | None = None  # who applies cosines and sines that are made for it, in words


def applied(subject: Subject, thing: Any, points: Points | None) -> Iterator[Way]:
    """Every pair of a source of cosines and a function that applies them, in every shape."""
    own = Call("subject", lambda thing: thing, tuple(parameters_of(thing)))
    if own.roles & {"cos", "cis"}:
        users, builders = [(own, "")], _builders(subject)
        exact = [(f"exact cosines and sines, {n}", partial(_ours, f)) for n, f in FORMS.items()]
    else:
        users, builders, exact = list(_appliers(subject)), calls_of(thing), []
    sources = (*_sources(builders, points), *exact)
    for (text, rows), (call, words) in product(sources, users):
        shapes, orders = (SHAPES[2:3], ORDERS[:1]) if words == UNSEEN else (SHAPES, ORDERS)
        named = replace(call, name=f"{call.name}({text})", written=True)
        for shape in shapes:
            yield Way(named, "rows", partial(_given, rows, call, shape), orders, words)


def _given(
    rows: Rows, call: Call, shape: Shape, thing: Any, q: Tensor, positions: Tensor, _layout: str
) -> dict[str, Any]:
    """Cosines and sines, or complex numbers made of them, for a call that applies them."""
    first, second = rows(thing, q, positions)
    if shape(first).ndim < first.ndim and bool((positions != positions[:1]).any()):
        raise CallFailedError("it takes one position a token, for all rows alike")
    if "cis" in call.required:
        cis = first if second is None else torch.complex(first.float(), second.float())
        return {"cis": shape(cis)}
    if second is None:  # complex numbers multiply neighbors
        first, second = (part.repeat_interleave(2, -1) for part in (first.real, first.imag))
    return {"cos": shape(first), "sin": shape(second)}


def _appliers(subject: Subject) -> Iterator[tuple[Call, str]]:
    """Functions beside the subject, or ours; each with whose it is, in words."""
    beside = []
    for name, function in subject.namespace.items():
        if applies(name) and callable(function):
            call = next(calls(name, function), None)
            if call and call.roles & {"x", "q"} and call.roles & {"cos", "cis"}:
                beside.append(call)
    one = ", one of several" if len(beside) > 1 else ""
    yield from ((call, f"applied by {call.name} beside it{one}") for call in beside)
    if not one:
        yield next(calls("rotated", rotated)), UNSEEN


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The usual application: by halves, or by neighbors where values stand twice side by side."""
    if cos.shape[-1] * 2 == x.shape[-1]:
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    elif cos.shape[-1] > 2 and torch.equal(cos[..., 0::2], cos[..., 1::2]):
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        return (x * cos + turned * sin).to(x.dtype)
    a, b = x.chunk(2, -1)
    return (x * cos + torch.cat((-b, a), -1) * sin).to(x.dtype)


def _sources(builders: Iterable[Call], points: Points | None) -> Iterator[tuple[str, Rows]]:
    """How a call gives cosines and sines: of positions, or of a length; as Python."""
    for call in (each for each in builders if each.required <= ROLES):
        if "positions" in call.roles:
            rows = partial(_by_positions, call.using("positions"), points)
            yield f"{call.name}(positions)", rows
        if "length" in call.roles or "x" in call.required:
            uses = ("length",) if "x" in call.required else ("length", "dim")
            yield f"{call.name}(length)", partial(_by_length, call.using(*uses))


def _builders(subject: Subject) -> Iterator[Call]:
    """Calls of functions beside the subject that build cosines and sines, by their names."""
    for name, function in subject.namespace.items():
        builds = any(word in name.lower() for word in BUILDERS) and not name.startswith("apply")
        if builds and callable(function) and not isinstance(function, type | nn.Module):
            yield from calls(name, function)


def _by_positions(
    call: Call, points: Points | None, thing: Any, x: Tensor, positions: Tensor
) -> Table:
    values = {"x": x, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4}

    def at_each(part: Tensor) -> Tensor:
        """Rows for each position ``[batch, seq, width]``, or for a line of them."""
        rows, seq = part.flatten(0, -2), positions.shape[1]
        if len(rows) not in (seq, positions.numel()):
            raise CallFailedError(f"its cosines have the shape {tuple(part.shape)}")
        return rows.unflatten(0, (-1, seq)).expand(len(positions), -1, -1)

    def at(some: Tensor, dtype: torch.dtype) -> Table:
        if some.ndim == 1 and bool((positions != positions[:1]).any()):
            raise CallFailedError("rows of a batch cannot have positions of their own")
        said = some if points is None else points(some)
        made = call(thing, {**values, "positions": said.to(dtype)})
        if isinstance(made, Tensor) and made.shape[:-1] == some.shape and not made.is_complex():
            raise CallFailedError("it gives one table, not cosines and sines")
        return _parts(made, at_each)

    shapes = (positions, torch.long), (positions[0], torch.long), (positions, torch.float32)
    return first_answer(lambda each=each: at(*each) for each in shapes)


def _by_length(call: Call, thing: Any, x: Tensor, positions: Tensor) -> Table:
    """Of a table that begins at 0; where content alone says its length, of as much content."""
    length = int(positions.max()) + 1
    if length * x.shape[-1] > 2**25:
        raise CallFailedError(f"a table of {length:,} rows is too long to be asked")
    if "length" not in call.roles and x.shape[2] < length:
        x = x[:, :, :1].expand(-1, -1, length, -1)
    values = {"length": length, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4, "offset": 0}

    def rows(part: Tensor) -> Tensor:
        every = part.flatten(0, -2)
        if len(every) < length:
            raise CallFailedError(f"its table ends at {len(every)} positions")
        return every[positions]

    contents = (layouts.laid_out(x, order) for order in ("bhsd", "bshd"))
    return first_answer(
        lambda some=some: _parts(call(thing, {**values, "x": some}), rows) for some in contents
    )


def _parts(made: Any, rows: Callable[[Tensor], Tensor]) -> Table:
    """The rows of cosines and sines that came as two tensors or stacked, or complex numbers."""
    if isinstance(made, Tensor) and made.is_complex() and made.ndim > 1:
        return rows(made), None
    if isinstance(made, Tensor) and made.ndim > 2 and 2 in (made.shape[-1], made.shape[0]):
        made = made.unbind(-1 if made.shape[-1] == 2 else 0)
    match made:
        case (Tensor() as cos, Tensor() as sin) if cos.shape == sin.shape and cos.ndim > 1:
            if not cos.is_complex() and bool((cos.square() + sin.square() <= 16).all()):
                return rows(cos), rows(sin)
    raise CallFailedError("it gives no cosines and sines")


def _ours(doubled: Shape, _thing: Any, x: Tensor, positions: Tensor) -> Table:
    """Exact cosines and sines, for a function that only applies them."""
    cos, sin = Rotary(x.shape[-1]).table(positions).unbind(-2)
    return doubled(cos), doubled(sin)
