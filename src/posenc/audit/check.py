"""One call: everything that can be asked of somebody's own implementation."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any

import torch
from torch import nn

from posenc.arguments import check_whole
from posenc.audit import models
from posenc.audit.adapters import grid, layouts
from posenc.audit.encodings import INTERFACES, of_ours
from posenc.audit.questions import grid as of_grid
from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.asking import asked
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.catalog import QUESTIONS
from posenc.audit.questions.faults import NOTES, REMEDIES
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import (
    AddsNothingError,
    CannotCheckError,
    NotAskedError,
    Report,
    Verdict,
    merged,
)
from posenc.audit.signatures import applies, lengths_of
from posenc.audit.subjects import Subject, applied_alone, subject_of
from posenc.audit.understanding import KNOWN, understood
from posenc.testing.cases import seed

KINDS: dict[str, str] = {"tokens": "added", "pairs": "rotary"}  # older names of kinds
LENGTH = 8_192  # up to where precision is judged where nothing says what a subject is built for
FAULTS = frozenset(REMEDIES) | NOTES  # the names of all faults and notes

INQUIRIES = {"added": AddedInquiry, "rotary": RotaryInquiry, "bias": BiasInquiry}
ORDERS = {*layouts.LAYOUTS, *layouts.OF_EMBEDDINGS}
QUESTION_NAMES = {question.name for questions in QUESTIONS.values() for question in questions}


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
    ignore: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    config: Any = None,
    seq_first: bool = False,
    name: str | None = None,
) -> Report:
    """Look for known faults of an implementation, measure its precision, and say what it is.

    It may be anything with a usual signature: a module that adds to embeddings, one that rotates
    queries and keys, a function that gives a table or a bias, or a transformers model or
    configuration, whose positional parts are checked one by one. An encoding that implements our
    interfaces runs through the contract battery. Fresh copies are run, never the object itself.

    Args:
        factory: A class, a function without arguments that builds the thing, or the thing itself.
        arguments: Keyword arguments of the class; of those that are missing, widths, heads and
            lengths are guessed by their names.
        kind: ``added``, ``rotary``, ``bias`` or ``table``; found out if not given.
        layout: The order of axes that it takes, as ``bsd``, ``sbd``, ``bhsd``, ``bshd``.
        call: How to call it, as Python with ``subject`` and any of x, q, k, p (positions), offset,
            q_len, k_len, scores, length, dim.
        dim: Width of embeddings or of a head, if it cannot be found out.
        length: Up to which position precision counts; what it is built for, or 8192.
        strict: Whether what is lossy counts as what is wrong.
        ignore: Names of faults that do not count, or one name.
        only: Names of the questions to ask, or one; all if empty.
        config: A Hugging Face configuration that a rotary subject must agree with; by default the
            one that it keeps as ``config``.
        seq_first: The same as ``layout="sbd"``.
        name: What to call it in the report.

    Raises:
        CannotCheckError: It cannot be built, or fits no form that is known.
        ValueError: An unknown kind, layout, fault or question.

    Example:
        >>> import math
        >>> def add(x):
        ...     angle = torch.arange(x.shape[1])[:, None] * 10_000 ** (-torch.arange(0, 8, 2) / 8)
        ...     return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
        >>> report = check(add, dim=8)
        >>> report.status, report.identity[:46]
        (0, 'the sinusoidal encoding, convention paper, bas')
    """
    kind, layout = KINDS.get(kind or "", kind), "sbd" if seq_first else layout
    _known("kind", kind or (), KNOWN)
    _known("layout", layout or (), ORDERS)
    ignored, asked_for = _known("fault", ignore, FAULTS), _known("question", only, QUESTION_NAMES)
    sizes = {"dim": dim, "length": length}
    check_whole(**{size: value for size, value in sizes.items() if value is not None})
    said = Said(kind, layout, call, dim, length, config, asked_for)
    with torch.random.fork_rng(devices=[]):
        seed()
        parts = models.parts(factory)
        if parts is not None:
            report = merged(name or models.named(factory), [_of_part(p, said) for p in parts])
        else:
            subject = subject_of(factory, dict(arguments or {}), name)
            ours = isinstance(subject.fresh(), INTERFACES)
            report = of_ours(subject) if ours else _report(subject, said)
    report.ignored, report.strict = ignored, strict
    return report


@dataclass(frozen=True)
class Said:
    """What a caller says of a subject; None is found out."""

    kind: str | None = None
    layout: str | None = None
    call: str | None = None
    dim: int | None = None
    length: int | None = None
    config: Any = None
    only: frozenset[str] = frozenset()

    def verdicts(self, inquiry: Any) -> list[Verdict]:
        """The answers to those questions that are wanted."""
        wanted = self.only or QUESTION_NAMES
        return asked([q for q in QUESTIONS[inquiry.view.kind] if q.name in wanted], inquiry)


def _known(what: str, given: str | Iterable[str], known: Collection[str]) -> frozenset[str]:
    """One name or several, if all are known."""
    names = frozenset([given] if isinstance(given, str) else given)
    for name in names.difference(known):
        near = get_close_matches(name, known, n=3) or sorted(known)
        raise ValueError(f"{name!r} is no {what}; did you mean {' or '.join(near)}?")
    return names


def _of_part(part: models.Part, said: Said) -> Report:
    seed()
    subject = applied_alone(subject_of(part.subject, {}, part.name), part.applied)
    length = said.length or part.length
    return _report(subject, Said(part.kind, length=length, config=part.config, only=said.only))


def _report(subject: Subject, said: Said) -> Report:
    try:
        view = understood(subject, said.kind, said.layout, said.call, said.dim)
    except CannotCheckError as reason:
        is_said = said.call is not None or said.kind not in (None, "rotary")
        if is_said or isinstance(reason, AddsNothingError):
            raise
        return _on_a_grid(subject, said, reason)
    if isinstance(said.config, dict | str):
        view.given = {**view.given, "config": said.config}  # to be said again
    length = said.length or _built_for(subject.fresh(), view)
    meant = (models.meant(subject, said.config),) if view.kind == "rotary" else ()
    inquiry: Any = INQUIRIES[view.kind](view, length, *meant)
    verdicts, told = said.verdicts(inquiry), view.understood
    if subject.guessed:
        given = ", ".join(f"{name}={value!r}" for name, value in subject.guessed.items())
        told += f" (built with {given}, by the names of its arguments)"
    identity = ""
    with suppress(NotAskedError):
        identity = inquiry.identity
    return Report(subject.name, view.kind, told, identity, verdicts, inquiry.errors, length)


def _on_a_grid(subject: Subject, said: Said, reason: CannotCheckError) -> Report:
    """What fits no form on a line, asked along each axis of its points."""
    found = grid.readings(subject, said.layout, said.dim)
    if (first := next(found, None)) is None:
        raise reason
    ways, expected = chain((first,), found), models.meant(subject, said.config)
    try:
        report = of_grid.report_of(subject, ways, said.length, said.verdicts, expected)
    except NotAskedError as refused:
        raise CannotCheckError(f"it cannot be asked on its grid: {refused}") from None
    beside = [name for name in subject.namespace if applies(name)]
    if beside and report.verdicts[0].faults and first[0].gives_tables:
        raise CannotCheckError(
            f"how {beside[0]} applies the table of {subject.name} on a grid was not seen; check "
            f"the function that rotates"
        )
    return report


def _built_for(thing: Any, view: Any) -> int:
    """The length that a subject is built for, as far as it says one."""
    said = lengths_of(thing) if isinstance(thing, nn.Module) else []
    # the other sizes of its tensors: widths, and the number of heads of a bias
    dim, heads = getattr(view, "dim", 0), getattr(view, "heads", 0)
    said = [n for n in said if n >= 16 and n not in (dim, dim // 2, heads)]
    return min(said[0], 2**20) if said else LENGTH
