"""Calls of what others wrote: bound by the roles of their parameters, guarded, measured."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.audit.report import CallFailedError
from posenc.audit.signatures import Parameter, parameters_of

METHODS = (
    "compute_bias", "rotate_queries_and_keys", "rotate_queries_or_keys", "apply_rotary", "rotate",
)  # fmt: skip
"""Methods that serve where a thing cannot be called itself."""


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


def callables_of(thing: Any) -> Iterator[tuple[str, Callable[[Any], Callable[..., Any]]]]:
    """The ways to call a thing: itself, or one of its methods; each with how to find it."""
    has_forward = callable(thing)
    if isinstance(thing, nn.Module):
        has_forward = getattr(type(thing), "forward", None) is not nn.Module.forward
    for name in METHODS:
        if callable(getattr(thing, name, None)):
            yield f"subject.{name}", lambda thing, name=name: getattr(thing, name)
    if has_forward:
        yield "subject", lambda thing: thing


def assignments(function: Any) -> Iterator[list[Parameter]]:
    """The parameters with roles for those whose names say nothing, most likely first."""
    parameters = parameters_of(function)
    unknown = [p for p in parameters if p.required and p.role is None]
    for guess in UNKNOWN.get(len(unknown), ()):
        roles = iter(guess)
        filled = [replace(p, role=next(roles)) if p in unknown else p for p in parameters]
        given = [p.role for p in filled if p.required]
        if len(given) == len(set(given)):
            yield filled
    heard = {p.role for p in parameters if p.required}
    if not unknown and heard == {"x"}:  # its argument may be positions or a length by any name
        for other in ("positions", "length"):
            yield [replace(p, role=other) if p.required else p for p in parameters]
    if not unknown and heard == {"positions", "dim"}:  # the number of positions by their name
        yield [replace(p, role="length") if p.role == "positions" else p for p in parameters]


UNKNOWN: dict[int, tuple[tuple[str, ...], ...]] = {
    0: ((),),
    1: (("x",), ("positions",), ("length",), ("scores",)),
    2: (("q", "k"), ("q_len", "k_len"), ("x", "positions"), ("length", "dim")),
}


def bound(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    values: Mapping[str, Any],
    uses: frozenset[str] = frozenset(),
) -> Any:
    """Call with a value for each required role, and for those optional ones that are used.

    Raises:
        CallFailedError: A required role has no value here, or the thing raised.
    """
    named = {}
    for p in parameters:
        if p.required and (p.role is None or p.role not in values):
            raise CallFailedError(f"there is no value for its parameter {p.name}")
        if p.role is not None and p.role in values and (p.required or p.role in uses):
            named[p.name] = values[p.role]
    return witnessed(lambda: function(**named), named)


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
    if (
        isinstance(made, tuple | list)
        and made
        and all(isinstance(v, Tensor | np.ndarray) for v in made)
    ):
        return tuple(as_tensor(v) for v in made)
    if isinstance(made, list) and made and all(isinstance(v, float | int) for v in made):
        return torch.tensor(made, dtype=torch.float64)
    return made


def varies(values: Tensor, axis: int) -> float:
    """The largest change of ``values`` along an axis.

    Example:
        >>> varies(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), 0)
        0.0
    """
    values = values.double()
    return (values - values.narrow(axis, 0, 1)).abs().max().item() if values.numel() else 0.0


def widths_of(thing: Any) -> list[int]:
    """Widths that a thing may be built for, by its attributes and tensors, then the usual ones."""
    found: list[Any] = []
    parts = list(thing.modules()) if isinstance(thing, nn.Module) else [thing]
    for part in parts:
        found += [getattr(part, name, None) for name in WIDTH_NAMES]
    for part in parts:
        if isinstance(part, nn.Module):
            tensors = [*part.parameters(), *part.buffers()]
            found += [t.shape[-1] for t in tensors if t.ndim > 1]
            found += [2 * t.shape[-1] for t in tensors if t.ndim > 0]
            # flattened: cos | sin caches, real views of complex numbers
            found += [t.shape[-2] * 2 for t in tensors if t.ndim > 2 and t.shape[-1] == 2]
            found += [t.shape[0] for t in tensors if t.ndim == 1]
    found = [w for w in found if isinstance(w, int) and 1 < w <= 8192]
    return list(dict.fromkeys((*found, *USUAL_WIDTHS)))


WIDTH_NAMES = (
    "org_channels", "head_dim", "head_size", "dim", "d_model", "embed_dim", "embedding_dim", "d",
    "rotary_dim",
    "hidden_size", "channels",
)  # fmt: skip
USUAL_WIDTHS = (64, 32, 16, 128)


def lengths_of(thing: Any) -> list[int]:
    """Lengths that a thing may be built for: what it says, and the rows of its tensors."""
    parts = list(thing.modules()) if isinstance(thing, nn.Module) else [thing]
    found: list[Any] = []
    for part in parts:
        found += [getattr(part, name, None) for name in LENGTH_NAMES]
        found.append(getattr(getattr(part, "config", None), "max_position_embeddings", None))
    said = [n for n in found if isinstance(n, int) and not isinstance(n, bool) and n > 1]
    rows = []
    for part in parts:
        if isinstance(part, nn.Module):
            kept = (v for v in vars(part).values() if isinstance(v, Tensor))
            tensors = [*part.parameters(recurse=False), *part.buffers(recurse=False), *kept]
            rows += [n for t in tensors if t.ndim > 1 for n in t.shape[:-1] if n >= 4]
    return list(dict.fromkeys((*said, *sorted(rows, reverse=True))))


LENGTH_NAMES = (
    "max_seq_len_cached", "max_position_embeddings", "max_seq_len", "max_len", "max_length",
    "max_position", "block_size", "context_length", "num_positions",
)  # fmt: skip


def most_taken(takes: Callable[[int], bool], bound: int) -> int:
    """The largest number up to ``bound`` that is taken, where smaller ones are; 0 if none is.

    Example:
        >>> most_taken(lambda n: n <= 23, 63)
        23
    """
    low, high = 0, bound
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if takes(middle) else (low, middle - 1)
    return low


def has_zeros(thing: Any) -> bool:
    """Whether it has a parameter of zeros, as tables are before they are trained."""
    return isinstance(thing, nn.Module) and any(not p.any() for p in thing.parameters())


def text_of(text: str, parameters: list[Parameter], uses: frozenset[str]) -> str:
    """How it is called, as Python: required parameters, and those of the roles that are said."""
    told = []
    for p in parameters:
        if p.required:
            told.append(p.name)
        elif p.role in uses:
            told.append(f"{p.name}=…")
    return f"{text}({', '.join(told)})"
