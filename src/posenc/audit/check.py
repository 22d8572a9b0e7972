"""One call: everything that can be asked of somebody's own implementation."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal, get_args

import torch
from torch import nn

from posenc.arguments import check_whole
from posenc.audit import heeded, models
from posenc.audit.adapters import added, added_layouts, bias, expression, grid, layouts, rotary
from posenc.audit.adapters.calls import lengths_of
from posenc.audit.applied import applied_alone, applies
from posenc.audit.encodings import implements, of_ours
from posenc.audit.questions import added as of_added
from posenc.audit.questions import bias as of_bias
from posenc.audit.questions import grid as of_grid
from posenc.audit.questions import rotary as of_rotary
from posenc.audit.questions.asking import Question, asked
from posenc.audit.questions.remedies import REMEDIES
from posenc.audit.report import (
    AddsNothingError,
    CannotCheckError,
    NearlyError,
    NotAskedError,
    Report,
)
from posenc.audit.subjects import Subject, subject_of
from posenc.testing.seeding import seed

Kind = Literal["added", "rotary", "bias", "table"]

KINDS: dict[str, str] = {"tokens": "added", "pairs": "rotary"}
"""Older names of kinds."""

LENGTH = 8_192
"""Up to where precision is judged where nothing says what a subject is built for."""

ACCEPTED = """it fits no form that is known here. Accepted are
  added:  f(x), f(x, positions), f(x, offset), f(positions), f(length, dim); x [batch, seq, dim],
          [seq, batch, dim], [seq, dim] or a grid
  rotary: f(x), f(q, k), f(q, k, positions), f(positions, q, k), f(q, k, cos, sin),
          f(q, k, freqs_cis), each with positions by keyword or an offset; a module that gives
          cosines and sines; x [batch, heads, seq, head_dim], [batch, seq, heads, head_dim],
          flattened, …; on a grid with positions [..., 2], or a table of all tokens of a square
  bias:   f(q_len, k_len), f(length), compute_bias(q_len, k_len), f(scores),
          f(mask, heads, dtype), f(heads), f() of a module that says its number of heads; one that
          takes the sides of a window with kind="bias" and call="subject((8, 8))"
Say which: kind (--as), layout (--layout), dim (--dim), or the call itself:
call="subject(q, k, position_ids=p)". Of attention or a whole layer, check the part inside."""


def check(
    factory: Any,
    *,
    arguments: Mapping[str, Any] | None = None,
    kind: str | None = None,
    layout: str | None = None,
    call: str | None = None,
    dim: int | None = None,
    length: int | None = None,
    strict: bool = False,
    ignore: Iterable[str] = (),
    only: Iterable[str] = (),
    config: Any = None,
    seq_first: bool = False,
    name: str | None = None,
) -> Report:
    """Ask an implementation for its known faults, measure its precision, and say what it is.

    It may be anything with a usual signature: a module that adds to embeddings or gives what to
    add; one that rotates queries and keys, or gives cosines and sines; a function that gives a
    bias; a transformers model or configuration, whose positional parts are asked one by one. One
    of our own interfaces runs through the contract battery. What is given is never run itself:
    every question has a fresh copy.

    Args:
        factory: A class, a function without arguments that builds the thing, or the thing itself.
        arguments: Keyword arguments of the class; of those that are missing, widths, heads and
            lengths are guessed by their names.
        kind: ``added``, ``rotary``, ``bias`` or ``table``; found out if not given.
        layout: The order of axes that it must take, as ``bsd``, ``sbd``, ``bhsd``, ``bshd``.
        call: How to call it, as Python with ``subject`` and any of x, q, k, p (positions), offset,
            q_len, k_len, scores, length, dim.
        dim: Width of embeddings or of a head, if it cannot be found out.
        length: Up to which position precision counts; what it is built for, or 8192.
        strict: Whether what is lossy counts as what is wrong.
        ignore: Names of faults that do not count.
        only: Names of the questions to ask; all if empty.
        config: A Hugging Face configuration that a rotary subject must agree with; by default the
            one that it keeps as ``config``.
        seq_first: The same as ``layout="sbd"``.
        name: What to call it in the report.

    Raises:
        CannotCheckError: It cannot be built, or fits no form that is known.
        ValueError: An unknown kind, fault or question, ``dim`` or ``length`` is no whole number
            from 1 on, or something is given that nothing reads: ``dim`` of a bias, ``layout`` of a
            table of one length, any of them beside a model or one of our encodings.

    Example:
        >>> import math
        >>> def add(x):
        ...     angle = torch.arange(x.shape[1])[:, None] * 10_000 ** (-torch.arange(0, 8, 2) / 8)
        ...     return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
        >>> report = check(add, dim=8)
        >>> report.status, report.identity[:46]
        (0, 'the sinusoidal encoding, convention paper, bas')
    """
    kind = KINDS.get(kind or "", kind)
    if seq_first and layout not in (None, "sbd"):
        raise ValueError(f"layout is {layout!r} and seq_first is True, which is sbd. Give one.")
    layout = "sbd" if seq_first else layout
    ignore, only = tuple(ignore), tuple(only)  # each is read several times
    _check_names(kind, layout, ignore, only)
    sizes = {"dim": dim, "length": length}
    check_whole(**{name: size for name, size in sizes.items() if size is not None})
    said = {
        "kind": kind, "seq_first" if seq_first else "layout": layout, "call": call, "dim": dim,
        "config": config,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        seed()
        parts = models.parts(factory, config)
        if parts is not None:
            whole = "a model or its configuration, whose parts are found and asked as they are"
            heeded.refuse_beside(whole, {**said, "arguments": arguments})
            reports = [_of_part(part, length, only) for part in parts]
            return _settled(models.merged(name or models.named(factory), reports), ignore, strict)
        subject = subject_of(factory, dict(arguments or {}), name)
        if implements(subject.fresh()):
            ours = "an encoding of posenc's interfaces, which the contract battery asks as a whole"
            heeded.refuse_beside(ours, {**said, "length": length, "only": only})
            return _settled(of_ours(subject), ignore, strict)
        try:
            report = _asked(subject, kind, layout, call, dim, length, only, config)
        except AddsNothingError:
            raise
        except CannotCheckError as reason:
            report = _on_a_grid(subject, kind, layout, call, dim, length, only, reason)
            heeded.refuse_beside("a rotation on a grid, which is held to none", {"config": config})
    return _settled(report, ignore, strict)


def _of_part(part: models.Part, length: int | None, only: Iterable[str]) -> Report:
    seed()
    subject = applied_alone(subject_of(part.subject, {}, part.name), part.applied)
    length = length or part.length
    try:
        return _asked(subject, part.kind, None, None, None, length, only, part.config)
    except AddsNothingError:
        raise
    except CannotCheckError as reason:
        return _on_a_grid(subject, part.kind, None, None, None, length, only, reason)


def _settled(report: Report, ignore: Iterable[str], strict: bool) -> Report:
    report.ignored, report.strict = frozenset(ignore), strict
    return report


def _check_names(
    kind: str | None, layout: str | None, ignore: Iterable[str], only: Iterable[str]
) -> None:
    if kind not in (None, *get_args(Kind)):
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(get_args(Kind))}.")
    orders = dict.fromkeys((*layouts.LAYOUTS, *added_layouts.LAYOUTS))
    if layout not in (None, *orders):
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(orders)}.")
    for each in ignore:
        if each not in FAULTS:
            raise ValueError(f"{each!r} is no fault{_meant(each, FAULTS)}")
    known = {q.name for questions in QUESTIONS.values() for q in questions}
    for each in only:
        if each not in known:
            raise ValueError(f"{each!r} is no question{_meant(each, known)}")


def _meant(word: str, known: Iterable[str]) -> str:
    """The names that are close to one that is not known, or all of them."""
    near = get_close_matches(word, known, n=3)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; expected one of {', '.join(sorted(known))}."


FAULTS = frozenset(REMEDIES) | {
    "takes-sequence-first", "dtype-changed", "unusual-base", "unknown-function", "key-only",
    "begins-elsewhere", "content-scaled", "values-shared", "buckets-by-side",
}  # fmt: skip
"""The names of all faults and notes."""

QUESTIONS: dict[str, tuple[Question, ...]] = {
    "added": of_added.QUESTIONS,
    "rotary": of_rotary.QUESTIONS,
    "bias": of_bias.QUESTIONS,
}

ROTATING = ("rotate_queries_or_keys", "apply_rotary", "rotate", "rotate_queries_and_keys")
"""Methods that rotate, whatever a call of the thing itself gives."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "bias": bias.bias_of,
    "added": added.added_of,
    "rotary": rotary.rotary_of,
    "added, of one length": lambda *given: added.added_of(*given, fixed=True),
    "bias, loosely": lambda *given: bias.bias_of(*given, loosely=True),
}


TRIED = {
    "added": ("added", "added, of one length"),
    "rotary": ("rotary",),
    "bias": ("bias", "bias, loosely"),
    "table": ("added", "rotary"),
}
"""Which adapters are tried for a kind."""


def understood(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None
) -> Any:
    """How a subject is called.

    Raises:
        CannotCheckError: In no form that is known; the message lists them.
    """
    if call is not None:
        return expression.called(subject, call, layout, dim, kind)
    kinds = TRIED.get(kind or "", tuple(ADAPTERS))
    if kind is None and any(callable(getattr(subject.fresh(), m, None)) for m in ROTATING):
        kinds = ("rotary",)  # whatever its forward gives
    elif kind is None and (layout is not None or dim is not None):
        kinds = (*(k for k in kinds if "bias" not in k), *(k for k in kinds if "bias" in k))
    nearly: NearlyError | None = None
    for each in kinds:
        try:
            view = ADAPTERS[each](subject, layout, dim)
        except AddsNothingError:
            raise
        except NearlyError as reason:
            nearly = nearly or reason
            continue
        except CannotCheckError:
            continue
        if nearly is not None and getattr(view, "by_guess", False):
            continue  # it was seen that what would be taken for positions is something else
        if kind is None and view.kind == "added":
            return _other_than_added(subject, view, layout, dim) or view
        return view
    if nearly is not None:
        raise CannotCheckError(f"it fits no form that is known here: {nearly}.")
    raise CannotCheckError(ACCEPTED if kind is None else f"as {kind} {ACCEPTED}")


def _other_than_added(subject: Subject, view: Any, layout: str | None, dim: int | None) -> Any:
    """What else it is that looks like a table or a sum, if it is."""
    if view.by_guess:
        return _rotates(subject, layout, dim)
    if view.layout in added.GRIDS and not view.declared:
        return _goes_by_distance(subject)
    return None


def _goes_by_distance(subject: Subject) -> Any:
    """It as a bias of scores, where it takes them by another name; None where it is none.

    Scores [batch, heads, q_len, k_len] look like a map of height and width.
    """
    try:
        found = bias.bias_of(subject, None, None, loosely=True)
        square = found.square(16)
    except (CannotCheckError, NotAskedError):
        return None
    steps = (square[:, 1:, 1:] - square[:, :-1, :-1]).nan_to_num(0.0)
    return found if bool(steps.abs().max() < 1e-5) and bool(square.std() > 0) else None


def _rotates(subject: Subject, layout: str | None, dim: int | None) -> Any:
    """It as something that rotates its content; None where this does not fit.

    What slices and broadcasts takes positions for content too, and gives what looks like a table.
    """
    try:
        view = rotary.rotary_of(subject, layout, dim)
        return view if (rotary.measured(view) or 0) >= 2 else None
    except CannotCheckError:
        if grid.row_of(subject, layout, dim) or next(grid.readings(subject, layout, dim), None):
            raise  # it is asked as a whole row, or on a grid
        return None


def _asked(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None,
    length: int | None, only: Iterable[str], config: Any,
) -> Report:  # fmt: skip
    view = understood(subject, kind, layout, call, dim)
    heeded.check_read(view, layout=layout, dim=dim)
    heeded.check_compared(view, config)
    said, length = length, length or _built_for(subject, view)
    if view.kind == "added":
        inquiry: Any = of_added.AddedInquiry(view, length)
    elif view.kind == "rotary":
        inquiry = of_rotary.RotaryInquiry(view, length, models.expected(subject, config))
    else:
        inquiry = of_bias.BiasInquiry(view, length)
    wanted = set(only)
    verdicts = asked([q for q in QUESTIONS[view.kind] if not wanted or q.name in wanted], inquiry)
    told = view.understood
    if subject.guessed:
        given = ", ".join(f"{name}={value!r}" for name, value in subject.guessed.items())
        told += f" (built with {given}, by the names of its arguments)"
    report = Report(
        subject.name, view.kind, told, _identity(inquiry), verdicts, inquiry.errors, length
    )
    return _as_patches(report, view, said, only)


def _on_a_grid(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None,
    length: int | None, only: Iterable[str], reason: CannotCheckError,
) -> Report:  # fmt: skip
    """What fits no form on a line, asked along each axis of a grid."""
    if call is not None or kind not in (None, "rotary"):
        raise reason
    wanted = set(only)
    questions = [q for q in of_rotary.QUESTIONS if not wanted or q.name in wanted]
    row = grid.row_of(subject, layout, dim)
    found = grid.readings(subject, layout, dim) if row is None else grid.squares(row)
    first = next(found, None)
    if first is not None:
        ask = lambda inquiry: asked(questions, inquiry)  # noqa: E731
        try:
            report = of_grid.report_of(subject, chain((first,), found), length, ask)
        except NotAskedError as refused:
            raise CannotCheckError(f"it cannot be asked on its grid: {refused}") from None
        beside = [name for name in subject.namespace if applies(name)]
        if beside and report.verdicts[0].faults and first[0].applied.startswith("it gives"):
            raise CannotCheckError(
                f"how {beside[0]} beside {subject.name} applies its cosines and sines on a grid "
                f"was not seen. Check the function that rotates."
            )
        return report
    if row is None:
        raise reason
    inquiry = of_rotary.RotaryInquiry(row, length or row.built_for or LENGTH)
    verdicts = asked(questions, inquiry)
    return Report(
        subject.name, "rotary", row.understood, _identity(inquiry), verdicts, inquiry.errors,
        inquiry.length,
    )  # fmt: skip


def _as_patches(report: Report, view: Any, length: int | None, only: Iterable[str]) -> Report:
    """What is blamed on a line and sound on the square whose tokens it keeps a table of.

    Or nearly so, by numbers of patches in the place of whole rows.

    Raises:
        CannotCheckError: That square is too small to tell.
    """
    blamed = any(each.severity == "wrong" for each in report.faults)
    if view.kind != "rotary" or report.identity or not blamed:
        return report
    wanted = set(only)
    questions = [q for q in of_rotary.QUESTIONS if not wanted or q.name in wanted]
    found = grid.squares(view, sound=True)
    first = next(found, None)
    if first is None:
        return report
    ask = lambda inquiry: asked(questions, inquiry)  # noqa: E731
    try:
        other = of_grid.report_of(view.subject, chain((first,), found), length, ask)
    except NotAskedError:
        return report
    return other if {f.name for f in other.verdicts[0].faults} <= {"rows-not-whole"} else report


def _identity(inquiry: Any) -> str:
    try:
        return inquiry.identity
    except NotAskedError:
        return ""


def _built_for(subject: Subject, view: Any) -> int:
    """The length that a subject is built for, as far as it says one."""
    said = lengths_of(subject.fresh()) if isinstance(subject.fresh(), nn.Module) else []
    # the other sizes of its tensors: widths, and the number of heads of a bias
    dim, heads = getattr(view, "dim", 0), getattr(view, "heads", 0)
    said = [n for n in said if n >= 16 and n not in (dim, dim // 2, heads)]
    return min(said[0], 2**20) if said else LENGTH
