"""What is checked, as a source of fresh copies: the caller's own object is never run or cast."""

import copy
import inspect
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial, update_wrapper
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.report import CannotCheckError
from posenc.audit.signatures import applies, parameters_of, role_of
from posenc.testing.cases import seed

# What stands for missing arguments of a constructor, by their roles and by their names.
GUESSES = {"dim": 64, "heads": 8, "length": 512, "base": 10_000.0}
OWN_GUESSES = {
    "dropout": 0.0, "dropout_p": 0.0, "p_dropout": 0.0, "num_buckets": 32, "max_distance": 128,
    "relative_attention_num_buckets": 32, "bidirectional": True, "device": None, "padding_idx": 1,
    "rotary_dim": 64, "is_neox_style": True, "dtype": torch.float32,
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A thing to check."""

    name: str  # what it is called in the report
    fresh: Callable[[], Any]  # gives one that nobody has used, in evaluation mode
    build: Callable[[], Any]  # builds one without copying, on whichever device is the default
    guessed: Mapping[str, Any] = field(default_factory=dict)  # arguments that were guessed
    namespace: Mapping[str, Any] = field(default_factory=dict)  # names beside it in its own module
    # all with which its class is called, those by default too
    arguments: Mapping[str, Any] = field(default_factory=dict)


def applied_alone(subject: Subject, applied: str | None) -> Subject:
    """The subject with this function beside it and no other that applies; itself without one."""
    if applied is None:
        return subject
    beside = {n: f for n, f in subject.namespace.items() if n == applied or not applies(n)}
    return replace(subject, namespace=beside)


def subject_of(factory: Any, arguments: Mapping[str, Any], name: str | None) -> Subject:
    """A source of fresh copies of what was given."""
    name = name or str(getattr(factory, "__name__", type(factory).__name__))
    guessed: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    if isinstance(factory, type):
        parameters = inspect.signature(factory).parameters.values()
        usual = {p.name: p.default for p in parameters if p.default is not p.empty}
        guessed = _guessed(factory, arguments)
        build = partial(factory, **guessed, **arguments)
    elif _builds(factory, arguments):
        build = partial(factory, **arguments)
    elif arguments and (isinstance(factory, nn.Module) or not callable(factory)):
        raise CannotCheckError(f"{name} is built already; arguments are those of its class")
    else:
        build = partial(_copied, partial(factory, **arguments) if arguments else factory)
    fresh = _evaluating(build)
    # what stands beside the class of the thing, and beside the function that builds it
    beside = _namespace(fresh()) | _namespace(factory)
    return Subject(name, fresh, build, guessed, beside, {**usual, **guessed, **arguments})


def _copied(thing: Any) -> Any:
    """A deep copy; of a function, one whose enclosed modules and tensors are copies."""
    if not isinstance(thing, types.FunctionType) or not thing.__closure__:
        return copy.deepcopy(thing)

    def again(cell: types.CellType) -> types.CellType:
        held = cell.cell_contents
        keeps = isinstance(held, nn.Module | Tensor | dict | list)
        return types.CellType(copy.deepcopy(held) if keeps else held)

    made = types.FunctionType(
        thing.__code__, thing.__globals__, thing.__name__, copy.deepcopy(thing.__defaults__),
        tuple(map(again, thing.__closure__)),
    )  # fmt: skip
    made.__kwdefaults__ = thing.__kwdefaults__
    update_wrapper(made, thing)
    return made


def _evaluating(build: Callable[[], Any]) -> Callable[[], Any]:
    """Copies of one that was built once; what cannot be copied is built again."""

    def made() -> Any:
        with torch.random.fork_rng(devices=[]):  # each begins with the same random numbers
            seed()
            thing = _tried(build)
        return thing.eval() if isinstance(thing, nn.Module) else thing

    first = cache(made)

    def fresh() -> Any:
        if isinstance(first(), nn.Module):
            with suppress(Exception):
                return copy.deepcopy(first())
        return made()

    return fresh


def _builds(factory: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether calling it gives a thing to check, and not already what that thing would say."""
    if isinstance(factory, nn.Module) or not callable(factory):
        return False
    if any(p.required and p.name not in arguments for p in parameters_of(factory)):
        return False
    return callable(_tried(partial(factory, **arguments)))


def _guessed(factory: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those arguments that are missing, by their names."""
    missing = [p.name for p in parameters_of(factory) if p.required and p.name not in arguments]
    by_role = {n: GUESSES[role] for n in missing if (role := role_of(n)) in GUESSES}
    return {n: value for n, value in (by_role | OWN_GUESSES).items() if n in missing}


def _tried(build: Callable[[], Any]) -> Any:
    try:
        return build()
    except Exception as error:
        raise CannotCheckError(
            f"it could not be built or copied: {type(error).__name__}: {error}. Pass arguments, "
            f"or a function that builds it."
        ) from error


def _namespace(factory: Any) -> dict[str, Any]:
    if isinstance(factory, types.FunctionType):
        return factory.__globals__
    module = inspect.getmodule(factory if isinstance(factory, type) else type(factory))
    return dict(vars(module)) if module is not None else {}
