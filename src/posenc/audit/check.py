"""One call: everything that can be asked of somebody's own implementation."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from torch import nn

from posenc.audit import biases, pairs, rotary, tokens
from posenc.audit.report import CannotCheckError, Fault, NotApplicableError, Report
from posenc.audit.rotary_subject import rotary_subject
from posenc.audit.token_subject import token_subject
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.testing.battery import battery
from posenc.testing.cases import Case

Kind = Literal["tokens", "rotary", "bias", "pairs"]


def check(
    factory: Any,
    *,
    arguments: Mapping[str, Any] | None = None,
    kind: Kind | None = None,
    dim: int | None = None,
    seq_first: bool = False,
    name: str | None = None,
) -> Report:
    """Ask an implementation for its known faults, and measure its precision.

    It may be anything with a usual signature: a module that adds to embeddings or gives what to
    add; one that rotates queries (with ``positions``, ``position_ids``, ``offset`` and the like,
    or from 0 on), or gives Llama's (cos, sin); one that changes queries and keys differently; a
    function of (q_len, k_len) that gives a bias. One of our own interfaces runs through the
    contract battery.

    Args:
        factory: A class, a function without arguments that builds the thing, or the thing itself.
        arguments: Keyword arguments of the class.
        kind: What it is; found out if not given.
        dim: Width of embeddings or of a head, if it cannot be found out.
        seq_first: Whether it takes ``[seq, batch, dim]``.
        name: What to call it in the report.

    Raises:
        CannotCheckError: It cannot be built, or fits no signature that is known.
        ValueError: ``kind`` is none of the three.

    Example:
        >>> from posenc import Sinusoidal
        >>> check(Sinusoidal, arguments={"dim": 16}).faults
        []
    """
    if kind not in (None, *get_args(Kind)):
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(get_args(Kind))}.")
    make = _maker(factory, dict(arguments or {}))
    thing = make()
    name = name or str(getattr(factory, "__name__", type(factory).__name__))
    if isinstance(thing, TokenEncoding | QueryKeyEncoding | ScoreEncoding):
        return _ours(name, make, thing)
    subject, found = _understood(make, kind, dim, seq_first)
    report = Report(name, found, subject.understood)
    for question in QUESTIONS[found]:
        _ask(question.__name__.replace("_", " "), lambda q=question: q(subject), report)
    if found in PRECISION:
        _measure(lambda: PRECISION[found](subject), report)
    return report


TOLERABLE = 1e-3
"""An error that attention scores begin to show; float32 angles reach it near position 20,000."""

QUESTIONS: dict[str, tuple[Callable[[Any], Fault | None], ...]] = {
    "tokens": tokens.QUESTIONS,
    "rotary": rotary.QUESTIONS,
    "bias": biases.QUESTIONS,
    "pairs": pairs.QUESTIONS,
}


PRECISION: dict[str, Callable[[Any], dict[int, float]]] = {
    "tokens": tokens.precision,
    "rotary": rotary.precision,
}


def _measure(precision: Callable[[], dict[int, float]], report: Report) -> None:
    """The error over the position, and a fault where attention would show it."""
    try:
        report.errors = precision()
    except NotApplicableError as reason:
        report.notes["precision"] = str(reason)
    first = next((p for p, far in report.errors.items() if far > TOLERABLE), None)
    if first is not None:
        worst, last = max(report.errors.values()), max(report.errors)
        report.faults.append(
            Fault(
                "imprecise at long lengths",
                f"cosines and sines are off by {report.errors[first]:.2g} at position {first:,} "
                f"and by {worst:.2g} up to {last:,}; computed exactly they are off by 3e-08",
                worst,
                3e-8,
            )
        )


def _maker(factory: Any, arguments: dict[str, Any]) -> Callable[[], Any]:
    """What builds a fresh one each time."""
    if isinstance(factory, type):
        make = lambda: factory(**arguments)  # noqa: E731
    elif isinstance(factory, nn.Module) or not callable(factory) or _needs_arguments(factory):
        return lambda: factory
    else:
        make = lambda: factory(**arguments)  # noqa: E731
    try:
        make()
    except Exception as error:
        raise CannotCheckError(
            f"it could not be built: {type(error).__name__}: {error}. Pass arguments, or a "
            f"function that builds it."
        ) from error
    return make


def _needs_arguments(function: Any) -> bool:
    empty = inspect.Parameter.empty
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is empty and p.kind in kinds for p in parameters)


def _understood(
    make: Callable[[], Any], kind: Kind | None, dim: int | None, seq_first: bool
) -> tuple[Any, str]:
    said = []
    ways: dict[str, Callable[[], Any]] = {
        "bias": lambda: biases.bias_subject(make),
        "tokens": lambda: token_subject(make, dim, seq_first),
        "rotary": lambda: rotary_subject(make, dim),
        "pairs": lambda: pairs.pair_subject(make, dim),
    }
    for name, understand in ways.items():
        if kind in (None, name):
            try:
                return understand(), name
            except CannotCheckError as reason:
                said.append(f"as {name}: {reason}")
    raise CannotCheckError("it fits no signature known here. " + "; ".join(said))


def _ask(name: str, question: Callable[[], Fault | None], report: Report) -> None:
    try:
        fault = question()
    except NotApplicableError as reason:
        report.notes[name] = str(reason)
    except Exception as error:
        report.notes[name] = f"{type(error).__name__}: {error}"
    else:
        if fault is None:
            report.passed.append(name)
        else:
            report.faults.append(fault)


def _ours(name: str, make: Callable[[], Any], thing: nn.Module) -> Report:
    """The contract battery, for what implements one of the interfaces."""
    report = Report(name, "encoding", f"implements {type(thing).__mro__[1].__name__}")
    heads = getattr(thing, "heads", 4)
    case = Case(make, heads=heads, kv_heads=heads if heads % 2 else heads // 2)
    for one in battery(case, compiling=False):

        def ask(one=one) -> Fault | None:
            try:
                one()
            except AssertionError as broken:
                return Fault(one.name, f"{one.function.__doc__} But {broken}", 1.0)
            return None

        _ask(one.name.replace("_", " "), ask, report)
    return report
