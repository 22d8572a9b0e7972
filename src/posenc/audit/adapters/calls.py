"""Calls of what others wrote: bound by the roles of their parameters, guarded, measured."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.audit.report import CallFailedError, OtherResultError
from posenc.audit.signatures import Parameter, parameters_of

METHODS = (
    "compute_bias", "rotate_queries_and_keys", "rotate_queries_or_keys", "apply_rotary", "rotate",
)  # fmt: skip
"""Methods that serve where a thing cannot be called itself."""


@dataclass(frozen=True)
class Call:
    """One way to call a thing.

    Attributes:
        name: What is called, as Python.
        find: From a copy to what is called.
        parameters: Its parameters, with roles for those whose names say nothing.
        uses: Optional roles that get a value too.
        written: The call itself, where it is written out; from a copy and values to the result.
        by_guess: Whether nothing but numbers says what a parameter is.
    """

    name: str
    find: Callable[[Any], Callable[..., Any]]
    parameters: tuple[Parameter, ...]
    uses: frozenset[str] = frozenset()
    written: Callable[[Any, Mapping[str, Any]], Any] | None = None
    by_guess: bool = False

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
        if self.written is not None:
            return self.name
        named = [p for p in self.parameters if p.required or p.role in self.uses]
        return f"{self.name}({', '.join(p.name + '=…' * (not p.required) for p in named)})"

    def using(self, *roles: str) -> "Call":
        """The same with values for these optional roles."""
        return replace(self, uses=frozenset(roles))

    def named(self, role: str) -> str:
        """The name of the parameter of a role."""
        return next(p.name for p in self.parameters if p.role == role)

    def __call__(self, thing: Any, values: Mapping[str, Any]) -> Any:
        """Call with a value for each role that is said.

        Raises:
            CallFailedError: A required role has no value here, or the thing raised.
        """
        if self.written is not None:
            return as_tensor(self.written(thing, values))
        named = {}
        for p in self.parameters:
            if p.required and (p.role is None or p.role not in values):
                raise CallFailedError(f"there is no value for its parameter {p.name}")
            if p.role is not None and p.role in values and (p.required or p.role in self.uses):
                named[p.name] = values[p.role]
        function = self.find(thing)
        return as_tensor(witnessed(lambda: function(**named), named))


def calls_of(thing: Any) -> Iterator[Call]:
    """The ways to call a thing, or one of its methods, most likely first."""
    has_forward = callable(thing)
    if isinstance(thing, nn.Module):
        has_forward = getattr(type(thing), "forward", None) is not nn.Module.forward
    for name in METHODS:
        if callable(getattr(thing, name, None)):
            find = lambda thing, name=name: getattr(thing, name)  # noqa: E731
            yield from calls(f"subject.{name}", find, getattr(thing, name))
    if has_forward:
        yield from calls("subject", lambda thing: thing, thing)


def calls(name: str, find: Callable[[Any], Any], function: Any) -> Iterator[Call]:
    """Calls of a function, with roles for parameters whose names say nothing."""
    parameters = tuple(parameters_of(function))
    unknown = [p for p in parameters if p.required and p.role is None]
    for guess in UNKNOWN.get(len(unknown), ()):
        roles = iter(guess)
        filled = tuple(replace(p, role=next(roles)) if p in unknown else p for p in parameters)
        given = [p.role for p in filled if p.required]
        if len(given) == len(set(given)):
            yield Call(name, find, filled, by_guess=bool({*guess} - {"x"}))
    if not unknown:
        heard = {p.role for p in parameters if p.required}
        for instead, other in OTHERWISE.get(frozenset(heard), ()):
            changed = (
                replace(p, role=other) if p.required and p.role == instead else p
                for p in parameters
            )
            yield Call(name, find, tuple(changed), by_guess=True)


UNKNOWN: dict[int, tuple[tuple[str, ...], ...]] = {
    0: ((),),
    1: (("x",), ("positions",), ("length",), ("scores",)),
    2: (("q", "k"), ("q_len", "k_len"), ("x", "positions"), ("length", "dim")),
}
"""What one or two parameters may be whose names say nothing."""

OTHERWISE: dict[frozenset[str | None], tuple[tuple[str, str], ...]] = {
    frozenset({"x"}): (("x", "positions"), ("x", "length")),
    frozenset({"positions", "dim"}): (("positions", "length"),),
}
"""What parameters may be by any name."""


def guarded(call: Callable[[], Any]) -> Any:
    """What a call gives, without gradients unless they are kept; its errors are reasons not to ask.

    Raises:
        CallFailedError: The thing raised.
    """
    with torch.set_grad_enabled(_keeps.get()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            words = " ".join(str(error).split())
            raise CallFailedError(f"{type(error).__name__}: {words[:160]}") from error


_keeps: ContextVar[bool] = ContextVar("keeps", default=False)


@contextmanager
def keeping_gradients() -> Iterator[None]:
    """Within, calls keep their graph."""
    token = _keeps.set(True)
    try:
        yield
    finally:
        _keeps.reset(token)


def witnessed(call: Callable[[], Any], named: Mapping[str, Any]) -> Any:
    """What a call gives; where somebody watches, how it changes what it is given by these names."""
    watched = _watched.get()
    if watched is None:
        return guarded(call)
    before = {name: v.clone() for name, v in named.items() if isinstance(v, Tensor)}
    made = guarded(call)
    for name, kept in before.items():
        change = (named[name] - kept).abs().max().item() if kept.numel() else 0.0
        watched[name] = max(watched.get(name, 0.0), change)
    return made


_watched: ContextVar[dict[str, float] | None] = ContextVar("watched", default=None)


@contextmanager
def watching() -> Iterator[dict[str, float]]:
    """Within, by how much calls change each tensor that they are given."""
    seen: dict[str, float] = {}
    token = _watched.set(seen)
    try:
        yield seen
    finally:
        _watched.reset(token)


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


def first_answer(calls: Iterator[Callable[[], Any]], refusal: str) -> Any:
    """What the first of some calls gives that is not refused.

    Raises:
        CallFailedError: All are; with the first reason.
    """
    problem: CallFailedError | None = None
    for call in calls:
        try:
            return call()
        except OtherResultError:
            raise
        except CallFailedError as error:
            problem = problem or error
    raise problem or CallFailedError(refusal)
