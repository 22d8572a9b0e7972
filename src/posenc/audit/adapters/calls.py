"""Calls of what others wrote: by the roles of their parameters, guarded; the best is kept."""

import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from posenc.audit.report import (
    AddsNothingError,
    CallFailedError,
    CannotCheckError,
    NearlyError,
    NotAskedError,
    OtherResultError,
    UnfitError,
)
from posenc.audit.signatures import Parameter, parameters_of
from posenc.audit.subjects import Subject

# Methods that rotate, whatever a call of the thing itself gives.
ROTATING = ("rotate_queries_and_keys", "rotate_queries_or_keys", "apply_rotary", "rotate")

# What one or two parameters may be whose names say nothing.
UNKNOWN: dict[int, tuple[tuple[str, ...], ...]] = {
    0: ((),),
    1: (("x",), ("positions",), ("length",), ("scores",)),
    2: (("q", "k"), ("q_len", "k_len"), ("x", "positions"), ("length", "dim")),
}

# What parameters may be by any name.
OTHERWISE: dict[frozenset[str | None], tuple[dict[str, str], ...]] = {
    frozenset({"x"}): ({"x": "positions"}, {"x": "length"}),
    frozenset({"positions", "dim"}): ({"positions": "length"},),
    frozenset({"q", "k"}): ({"q": "q_len", "k": "k_len"},),
}

PLACES = frozenset({"positions", "offset"})  # roles that say where tokens stand
NOTHING = "what it gives is 0, as where a table is still of zeros; give it numbers first"


@dataclass(frozen=True)
class Call:
    """One way to call a thing."""

    name: str  # what is called, as Python
    find: Callable[[Any], Callable[..., Any]]  # from a copy to what is called
    parameters: tuple[Parameter, ...]  # with roles for those whose names say nothing
    uses: frozenset[str] = frozenset()  # optional roles that get a value too
    written: bool = False  # whether the user wrote it out
    by_guess: bool = False  # whether nothing but numbers says what a parameter is

    @cached_property
    def required(self) -> frozenset[str | None]:
        """The roles without which it is not called; None for a name that says nothing."""
        return frozenset(p.role for p in self.parameters if p.required)

    @cached_property
    def roles(self) -> frozenset[str | None]:
        """The roles of all its parameters."""
        return frozenset(p.role for p in self.parameters)

    @property
    def said(self) -> frozenset[str | None]:
        """The roles that get a value."""
        return self.required | self.uses

    @property
    def text(self) -> str:
        """How it is called, as Python."""
        if self.written:
            return self.name
        named = [p for p in self.parameters if p.required or p.role in self.uses]
        return f"{self.name}({', '.join(p.name + '=…' * (not p.required) for p in named)})"

    def using(self, *roles: str | None) -> Self:
        """The same with values for these optional roles."""
        return replace(self, uses=frozenset(roles) & self.roles)

    def ways(self) -> Iterator[tuple[str, Self]]:
        """By which role positions are said, each token's or the first; or empty for none."""
        plain = () if self.required else ("x",) if "x" in self.roles else ("length", "dim")
        for role in ("positions", "offset"):
            if role in self.roles:
                yield role, self.using(*plain, role)
        if not PLACES & self.required:
            yield "", self.using(*plain)

    def beside(self, run: Callable[[Self], Callable[..., Any]]) -> dict[str, Any]:
        """Of a view, what runs with other parameters for positions, and without any."""
        plain = self.using(*self.uses - PLACES)
        has_content = bool(self.said & {"x", "q"})
        may_lack = has_content and self.uses & PLACES and not self.required & PLACES
        others = [p for p in self.parameters if p.role in PLACES - self.said]
        return {
            "others": tuple((p.name, run(plain.using(*plain.uses, p.role))) for p in others),
            "unsaid": run(plain) if may_lack else None,
        }

    def __call__(self, thing: Any, values: Mapping[str, Any]) -> Any:
        """Call with a value for each role that is said."""
        given = [p for p in self.parameters if p.required or (p.role in self.uses & set(values))]
        if without := [p.name for p in given if p.role not in values]:
            raise CallFailedError(f"there is no value for its parameter {without[0]}")
        named = {p.name: values[p.role] for p in given if p.role is not None}
        function, changes = self.find(thing), MANNER.get().changes
        if changes is None:
            return as_tensor(guarded(lambda: function(**named)))
        before = {name: v.clone() for name, v in named.items() if isinstance(v, Tensor)}
        made = guarded(lambda: function(**named))
        for name, kept in before.items():
            change = (named[name] - kept).abs().max().item() if kept.numel() else 0.0
            changes[name] = max(changes.get(name, 0.0), change)
        return as_tensor(made)


def calls_of(thing: Any) -> Iterator[Call]:
    """The ways to call a thing, or one of its methods, most likely first."""
    for name in ("compute_bias", *ROTATING):
        if callable(getattr(thing, name, None)):
            find = lambda thing, name=name: getattr(thing, name)  # noqa: E731
            yield from calls(f"subject.{name}", getattr(thing, name), find)
    if isinstance(thing, nn.Module) and type(thing).forward is nn.Module.forward:
        return
    if callable(thing):
        yield from calls("subject", thing, lambda thing: thing)


def calls(name: str, function: Any, find: Callable[[Any], Any] | None = None) -> Iterator[Call]:
    """Calls of a function, with roles for parameters whose names say nothing."""
    find = find or (lambda _: function)
    parameters = tuple(parameters_of(function))
    unknown = [p for p in parameters if p.required and p.role is None]
    for guess in UNKNOWN.get(len(unknown), ()):
        roles = iter(guess)
        filled = tuple(replace(p, role=next(roles)) if p in unknown else p for p in parameters)
        given = [p.role for p in filled if p.required]
        if len(given) == len(set(given)):
            yield Call(name, find, filled, by_guess=bool({*guess} - {"x"}))
    heard = frozenset(p.role for p in parameters if p.required)
    for other in OTHERWISE.get(heard, ()):
        changed = (replace(p, role=other.get(p.role or "", p.role)) for p in parameters)
        yield Call(name, find, tuple(changed), by_guess=True)


@dataclass(frozen=True)
class Manner:
    """How calls are made within ``asking``."""

    gradients: bool = False  # whether they keep their graph
    changes: dict[str, float] | None = None  # by how much they change each tensor given to them
    lie: Callable[[Tensor], Tensor] | None = None  # how what they are given lies in memory


MANNER: ContextVar[Manner] = ContextVar("manner", default=Manner())  # noqa: B039


@contextmanager
def asking(**how: Any) -> Iterator[None]:
    """Within, calls are made in this manner."""
    token = MANNER.set(replace(MANNER.get(), **how))
    try:
        yield
    finally:
        MANNER.reset(token)


def guarded(call: Callable[[], Any]) -> Any:
    """What a call gives; its errors are reasons not to ask."""
    with torch.set_grad_enabled(MANNER.get().gradients), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            words = " ".join(str(error).split())
            raise CallFailedError(f"{type(error).__name__}: {words[:160]}") from error


def as_tensor(made: Any) -> Any:
    """Arrays of NumPy and lists of numbers as tensors, also within a tuple."""
    if isinstance(made, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(made))
    if isinstance(made, tuple | list) and made:
        if all(isinstance(v, Tensor | np.ndarray) for v in made):
            return tuple(as_tensor(v) for v in made)
        if isinstance(made, list) and all(isinstance(v, float | int) for v in made):
            return torch.tensor(made, dtype=torch.float64)
    return made


@dataclass(kw_only=True)
class View:
    """One way to call a subject; a bias has no width, no order of axes and no positions."""

    subject: Subject
    run: Callable[..., Any]  # the call of a copy
    text: str  # how it is called, as Python
    dim: int = 0  # width of embeddings or of a head
    layout: str = ""  # the order of axes that it takes
    declared: bool = False  # whether its author or the caller says that order
    moves: str = ""  # how positions are said, or "" for not at all
    unsaid: Callable[..., Any] | None = None  # without positions, where these may be left out
    others: tuple[tuple[str, Callable[..., Any]], ...] = ()  # by other parameters for positions
    by_guess: bool = False  # whether nothing but numbers says that an argument is positions
    given: Mapping[str, Any] = field(default_factory=dict)  # what the caller said of the call
    fit: int = -1  # how well it fits

    def refuse_zeros(self, made: Tensor) -> None:
        """Of a parameter of zeros, as tables are before they are trained, nothing is learned."""
        thing = self.subject.fresh()
        learned = thing.parameters() if isinstance(thing, nn.Module) else ()
        if not made.any() and any(not p.any() for p in learned):
            raise AddsNothingError(NOTHING)


def answers(call: Callable[[], Any]) -> bool:
    """Whether a call is not refused."""
    try:
        call()
    except NotAskedError:
        return False
    return True


def most_taken(takes: Callable[[int], bool], bound: int) -> int:
    """The largest number up to ``bound`` that is taken, where smaller ones are; 0 if none is."""
    return bisect_left(range(1, bound + 1), True, key=lambda count: not takes(count))


def first_answer(calls: Iterable[Callable[[], Any]]) -> Any:
    """What the first of some calls gives that is not refused; the first reason, if all are."""
    problem: CallFailedError | None = None
    for call in calls:
        try:
            return call()
        except OtherResultError:
            raise
        except CallFailedError as error:
            problem = problem or error
    raise problem or CallFailedError("there is no way to call it")


def best(views: Iterable[View], fit: Callable[[Any], int | None], enough: int = 1) -> Any:
    """The first view that fits well enough, or the one that fits best."""
    found: Any = None
    problem, unfit = "", ""
    for view in views:
        try:
            fits = fit(view)
        except UnfitError as reason:
            unfit = unfit or str(reason)
        except NotAskedError as reason:
            problem = problem or str(reason)
        else:
            if fits is not None and (found is None or fits > found.fit):
                found, view.fit = view, fits
            if fits == enough:
                break
    if found is None:
        raise NearlyError(unfit) if unfit else CannotCheckError(problem or "it is of no known form")
    return found
