"""A model's own rotation for channels of the other pairing, measured before it is put in."""

import inspect
import types
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.oracle.watching import Record
from posenc.interop.weights.layouts import RowOrder
from posenc.numerics.pairing import Pairing, convert_channels

EQUAL, APART = 1e-5, 1e-3
"""Softmax in float32 leaves 1e-7 of the outputs; a wrong order leaves a tenth of them and more."""

Functions = dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Attention:
    """One module that rotates."""

    path: str
    module: nn.Module
    layer: Rotary  # in the pairing of its code
    orders: dict[str, RowOrder]  # by the names of its tensors


@dataclass(frozen=True)
class OtherPairing:
    """A model's function that rotates, for channels that come in the other pairing."""

    function: Callable[..., Any]
    layer: Rotary
    keeps_order: bool  # of channels; a function that does not pairs neighbors and gives halves
    contents: tuple[str, ...]  # the names of the arguments that it rotates

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The contents rotated; channels keep their order."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        for name in self.contents:
            bound.arguments[name] = self._reordered(bound.arguments[name], self.layer.pairing)
        out = self.function(*bound.args, **bound.kwargs)
        if not self.keeps_order:
            return out
        other: Pairing = "half" if self.layer.pairing == "interleaved" else "interleaved"
        if isinstance(out, tuple | list):
            return tuple(self._reordered(x, other) for x in out)
        return self._reordered(out, other)

    def _reordered(self, x: Tensor, to: Pairing) -> Tensor:
        """Of heads, or of their rotated part alone."""
        layer = self.layer
        return convert_channels(x, to, rotated_dim=layer.rotated_dim, rotated=layer.rotated)


@torch.no_grad()
def measured(each: Attention, record: Record, to: Pairing) -> Functions:
    """The functions with which permuted random weights give the outputs of those in order."""
    named, functions = _plain_forward(each.module).__code__.co_names, Functions()
    for call in record.rotated:
        rotates = call.path == each.path and call.name in named
        if rotates and (rotation := call.rotation(record.positions)) is not None:
            made = OtherPairing(call.function, each.layer, not rotation.reorders, call.contents)
            functions[call.name] = made
    if not functions:
        raise ValueError("its forward pass calls no function that rotates")
    args, kwargs = _wide(record.given[each.path], record.positions.shape[-1])
    copy = _random_copy(each.module)
    wanted = _first(copy(*args, **kwargs))
    tensors = dict(copy.named_parameters())
    for name, order in each.orders.items():
        tensors[name].copy_(order.converted(tensors[name], to))
    blind = _first(copy(*args, **kwargs))
    with_functions(copy, functions)
    given = _first(copy(*args, **kwargs))
    unlike, changed = (float((x - wanted).abs().max() / wanted.abs().max()) for x in (blind, given))
    if unlike <= APART:
        raise ValueError("its outputs do not tell one pairing from the other")
    if changed > EQUAL:
        raise ValueError(f"its outputs would change by {changed:.2g} of their size")
    return functions


def _random_copy(module: nn.Module) -> nn.Module:
    """The module with random weights in float64, so that every channel counts."""
    copy = deepcopy(module).double().eval()
    drawn = torch.Generator().manual_seed(0)
    for each in copy.parameters():
        numbers = torch.randn(each.shape, generator=drawn, dtype=torch.float64)
        scale = each.shape[-1] ** -0.5 if each.ndim > 1 else 0.5
        each.copy_(numbers * scale + (each.ndim < 2))
    return copy


def _wide(given: Any, seq: int) -> Any:
    """Floating tensors in float64, hidden states (no cosines) random; and no cache, being full."""
    if isinstance(given, Tensor) and given.is_floating_point():
        first = given[:, 0] if given.ndim == 3 and given.shape[1] == seq else None
        if first is None or (first == first.flatten()[0]).all():
            return given.double()
        drawn = torch.Generator().manual_seed(1)
        return torch.randn(given.shape, generator=drawn, dtype=torch.float64).to(given.device)
    if isinstance(given, dict):
        return {name: _wide(value, seq) for name, value in given.items()}
    if isinstance(given, tuple | list):
        return [_wide(each, seq) for each in given]
    return None if hasattr(given, "get_seq_length") else given


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple | list) else out


def _plain_forward(module: nn.Module) -> types.FunctionType:
    """The forward function of the module's class, without what decorates it."""
    return inspect.unwrap(type(module).forward)  # type: ignore[return-value]


def with_functions(module: nn.Module, functions: Functions) -> None:
    """Let this one module call other functions; its class and its neighbors keep theirs."""
    # A bound method would be pickled by its name, and come back as that of the class.
    vars(module)["forward"] = partial(_forward, module, functions)


# torch.compile looks globals up by the name of their module, where the old functions stand.
@torch.compiler.disable
def _forward(module: nn.Module, functions: Functions, /, *args: Any, **kwargs: Any) -> Any:
    """The forward pass of the module's class, with other functions in place of its own."""
    plain = _plain_forward(module)
    names = {**plain.__globals__, **functions}
    own = types.FunctionType(
        plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__
    )
    own.__kwdefaults__ = plain.__kwdefaults__
    return own(module, *args, **kwargs)


def calls_others(module: nn.Module) -> bool:
    """Whether ``with_functions`` was the last to change what the module calls."""
    return getattr(vars(module).get("forward"), "func", None) is _forward
