"""Cosines and sines that are applied to queries and keys by another function, or by nobody yet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import as_tensor, assignments, bound, callables_of
from posenc.audit.adapters.rotary_view import RotaryView
from posenc.audit.applied import applies
from posenc.audit.report import CallFailedError
from posenc.audit.signatures import Parameter, parameters_of
from posenc.audit.subjects import Subject
from posenc.encodings.queries_keys import Rotary

Table = tuple[Tensor, Tensor | None]
"""Cosines and sines ``[batch, seq, width]``, or complex numbers and None."""

Rows = Callable[[Any, Tensor, Tensor], Table]
"""From a copy, content ``[batch, heads, seq, head_dim]`` and positions ``[batch, seq]``."""


@dataclass(frozen=True)
class Source:
    """Where cosines and sines come from.

    Attributes:
        rows: Gives them.
        text: How they are called, as Python.
        moves: How positions are said.
        fed: Whether they are ours.
    """

    rows: Rows
    text: str
    moves: str
    fed: bool = False


def applied_views(
    subject: Subject, said: str | None, widths: tuple[int, ...]
) -> Iterator[RotaryView]:
    """Every pair of a source of cosines and a function that applies them, in every shape."""
    thing = subject.fresh()
    appliers = list(_appliers(subject, thing))
    orders = (said,) if said else ("bhsd", "bshd", "sbhd", "bsd", "thd")
    for source in _sources(subject, thing):
        for text, apply, words in appliers:
            if source.fed and words:
                continue
            for layout in orders:
                for shape in SHAPES:
                    for dim in widths:
                        run = _runner(source, apply, layout, shape)
                        told = f"{text}({source.text})"
                        for kv_heads in (2, 4):
                            yield RotaryView(
                                subject, run, told, dim, layout, said is not None, source.moves,
                                apply.pairs, kv_heads, applied=words, fed=source.fed,
                            )  # fmt: skip


@dataclass(frozen=True)
class Applier:
    """A function that applies cosines and sines.

    Attributes:
        call: From content and a table, as it takes them, to the result.
        pairs: Whether it takes queries and keys together.
    """

    call: Callable[[Any, list[Tensor], Table], Any]
    pairs: bool


def _sources(subject: Subject, thing: Any) -> Iterator[Source]:
    """Where the cosines of this subject come from: itself, its module, or us."""
    applies = any({p.role for p in parameters_of(thing)} & {"cos", "cis"} for _ in (0,))
    if not applies:
        for text, find in callables_of(thing):
            for parameters in assignments(find(thing)):
                yield from _own(text, find, parameters)
        return
    for name, function in subject.namespace.items():
        if _builds_tables(name, function):
            for parameters in assignments(function):
                yield from _own(name, lambda _, f=function: f, parameters)
    for form in ("half", "interleaved", "pairs"):
        yield Source(_ours(form), f"exact cosines and sines, {form}", "rows", fed=True)


def _builds_tables(name: str, function: Any) -> bool:
    words = ("precompute", "freqs_cis", "build_rope", "rope_cache", "rotary_table", "cos_sin")
    if not callable(function) or isinstance(function, type | nn.Module):
        return False
    return any(word in name.lower() for word in words) and not name.startswith("apply")


def _own(text: str, find: Callable[[Any], Any], parameters: list[Parameter]) -> Iterator[Source]:
    roles = {p.role for p in parameters}
    required = {p.role for p in parameters if p.required}
    if not required <= {"x", "positions", "length", "dim", "offset", "base", "dtype"}:
        return
    if "positions" in roles:
        yield Source(_by_positions(find, parameters), f"{text}(positions)", "rows")
    if "length" in roles or "x" in required:
        uses = frozenset({"length", "dim"}) if "x" not in required else frozenset({"length"})
        yield Source(_by_length(find, parameters, uses), f"{text}(length)", "rows")
    if not required & {"positions"} and "x" in required:
        yield Source(_by_length(find, parameters, frozenset()), f"{text}(x)", "")


def _by_positions(find: Callable[[Any], Any], parameters: list[Parameter]) -> Rows:
    def rows(thing: Any, x: Tensor, positions: Tensor) -> Table:
        problem: CallFailedError | None = None
        for some in (positions, positions[0], positions.float()):
            if some.ndim == 1 and bool((positions != positions[:1]).any()):
                continue
            values = {"x": x, "positions": some, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4}
            try:
                made = as_tensor(bound(find(thing), parameters, values, frozenset({"positions"})))
                if isinstance(made, Tensor) and not made.is_complex():
                    _split(made, some)
                return _table(made, positions, False)
            except CallFailedError as error:
                problem = problem or error
        raise problem or CallFailedError("rows of a batch cannot have positions of their own")

    return rows


def _by_length(
    find: Callable[[Any], Any], parameters: list[Parameter], uses: frozenset[str]
) -> Rows:
    says_length = "length" in {p.role for p in parameters if p.required} | uses
    takes_length = "length" in {p.role for p in parameters}

    def rows(thing: Any, x: Tensor, positions: Tensor) -> Table:
        length = int(positions.max()) + 1
        if not says_length and x.shape[2] < length:
            raise CallFailedError("its positions cannot be said")
        if length * x.shape[-1] > 2**25:
            raise CallFailedError(f"a table of {length:,} rows is too long to be asked")
        if says_length and not takes_length and x.shape[2] < length:  # as long as its content
            x = x[:, :, :1].expand(-1, -1, length, -1)
        values = {
            "length": length, "dim": x.shape[-1], "dtype": x.dtype, "base": 1e4, "offset": 0,
        }  # fmt: skip
        problem: CallFailedError | None = None
        for order in ("bhsd", "bshd") if "x" in {p.role for p in parameters} else ("bhsd",):
            values["x"] = layouts.laid_out(x, order)
            try:
                made = bound(find(thing), parameters, values, uses & {p.role for p in parameters})
                return _table(made, positions, True)
            except CallFailedError as error:
                problem = problem or error
        assert problem is not None
        raise problem

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
    if len(found) == 2 and bool(
        (found[0].double().square() + found[1].double().square() > 16).any()
    ):
        raise CallFailedError("it gives no cosines and sines")
    return (found[0], found[1]) if len(found) == 2 else (found[0], None)


def _split(part: Tensor, positions: Tensor | None = None) -> list[Tensor]:
    """cos and sin kept together: stacked last, or one after the other (vLLM's cos_sin_cache).

    One row for each of these positions, of two rows of a batch, is no cosines and their sines.
    """
    if positions is not None and part.shape[:-1] == positions.shape:
        raise CallFailedError("it gives one table, not cosines and sines")
    if part.ndim >= 3 and part.shape[-1] == 2:
        return list(part.unbind(-1))
    if part.ndim >= 3 and part.shape[0] == 2:
        return list(part.unbind(0))
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
            return torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
        if form == "interleaved":
            return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        return cos, sin

    return rows


def _appliers(subject: Subject, thing: Any) -> Iterator[tuple[str, Applier, str]]:
    """Functions that apply tables: the subject itself, one beside it, or ours at the end."""
    own = {p.role for p in parameters_of(thing)}
    if own & {"cos", "cis"}:
        yield "subject", _applier(None, parameters_of(thing)), ""
        return
    beside = []
    for name, function in subject.namespace.items():
        if applies(name) and callable(function):
            parameters = next(assignments(function), [])
            roles = {p.role for p in parameters}
            if roles & {"x", "q"} and roles & {"cos", "cis"}:
                beside.append((name, _applier(function, parameters)))
    for name, applier in beside:
        one = ", one of several" if len(beside) > 1 else ""
        yield name, applier, f"applied by {name} beside it{one}"
    yield "rotated", Applier(_plainly, False), ("it gives cosines and sines; how they are applied "
                                        "was not seen")  # fmt: skip


def _applier(function: Any, parameters: list[Parameter]) -> Applier:
    roles = {p.role for p in parameters if p.required}

    def call(thing: Any, content: list[Tensor], table: Table) -> Any:
        first, second = table
        if ("cis" in roles) != (second is None):
            if second is None:
                raise CallFailedError("it takes cosines and sines, not complex numbers")
            first = torch.complex(first.float(), second.float())
        values = {"q": content[0], "x": content[0], "k": content[-1], "cos": first, "sin": second}
        values["cis"] = first
        return bound(function or thing, parameters, values)

    return Applier(call, "q" in roles and "k" in roles)


def _plainly(_thing: Any, content: list[Tensor], table: Table) -> Any:
    """The usual application: by halves, or by neighbors where values stand twice side by side."""
    x, (cos, sin) = content[0], table
    if sin is None or cos.shape[-1] * 2 == x.shape[-1]:
        cos, sin = (cos.real, cos.imag) if sin is None else (cos, sin)
        if cos.shape[-1] * 2 != x.shape[-1]:
            raise CallFailedError("its cosines have another width than heads")
        if table[1] is None:  # complex numbers multiply neighbors
            cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
            return x * cos + _neighbors(x) * sin
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    elif cos.shape[-1] != x.shape[-1]:
        raise CallFailedError("its cosines have another width than heads")
    elif torch.equal(cos[..., 0::2], cos[..., 1::2]) and cos.shape[-1] > 2:
        return x * cos + _neighbors(x) * sin
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def _neighbors(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


SHAPES: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda t: t,  # [batch, seq, width]
    lambda t: t[0],  # [seq, width]
    lambda t: t[:, None],  # [batch, 1, seq, width]
    lambda t: t[:, :, None],  # [batch, seq, 1, width]
    lambda t: t[0][:, None, None],  # [seq, 1, 1, width]
    lambda t: t[0][:, None],  # [seq, 1, width]
)


def _runner(
    source: Source, apply: Applier, layout: str, shape: Callable[[Tensor], Tensor]
) -> Callable[[Any, Tensor, Tensor, Tensor], tuple[Tensor, Tensor | None]]:
    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor | None]:
        first, second = source.rows(thing, q, positions)
        if shape(first).ndim < first.ndim and bool((positions != positions[:1]).any()):
            raise CallFailedError("it takes one position a token, for all rows alike")
        if apply.call is _plainly:
            made = _plainly(
                thing, [q], (first[:, None], None if second is None else second[:, None])
            )
            return made.to(q.dtype), None
        table = shape(first), None if second is None else shape(second)
        content = [layouts.laid_out(x, layout) for x in ((q, k) if apply.pairs else (q,))]
        made = apply.call(thing, content, table)
        if isinstance(made, tuple | list) and apply.pairs:
            return layouts.taken_back(made[0], layout, q), layouts.taken_back(made[1], layout, k)
        return layouts.taken_back(made, layout, q), None

    return run
