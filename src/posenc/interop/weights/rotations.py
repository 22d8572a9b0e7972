"""A model's own rotation, made to turn the channels of the other pairing."""

import inspect
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.kernels.rotary.front import rotate
from posenc.numerics.pairing import Pairing, Rotated

ROTATES = re.compile(r"^_?apply_.*(rot|rope)")
"""Names of the functions by which attention rotates."""


class UnknownRotationError(ValueError):
    """A function that does something else than rotate the pairs that were read."""


@dataclass(frozen=True)
class OtherPairing:
    """Stands for a function that rotates, with its cosines, and turns pairs of the other kind.

    The cosines are read from the function itself: given 1 in the first channel of every pair and 0
    in the second, it returns them, and the sines beside them, whatever form they were handed in.

    Attributes:
        function: The model's own.
        layer: The encoding of the layer, in the pairing of the model's code.
        to: The pairing of the channels that come.
        keeps_order: Whether the function hands channels back in the order in which they came.
        contents: The names of its arguments that are rotated: the first ones.
    """

    function: Callable[..., Any]
    layer: Rotary
    to: Pairing
    keeps_order: bool
    contents: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The contents rotated; channels keep their order."""
        named = {**dict(zip(self.contents, args, strict=False)), **kwargs}
        given = [named[name] for name in self.contents]
        units = {name: self._unit(x) for name, x in zip(self.contents, given, strict=True)}
        by_place, by_name = self.contents[: len(args)], self.contents[len(args) :]
        told = self.function(
            *(units[name] for name in by_place),
            *args[len(self.contents) :],
            **{**kwargs, **{name: units[name] for name in by_name}},
        )
        told = told if isinstance(told, tuple | list) else (told,)
        made = [self._turned(x, y) for x, y in zip(given, told, strict=False)]
        return tuple(made) if len(made) > 1 else made[0]

    def _unit(self, x: Tensor) -> Tensor:
        """1 in the first channel of every pair, 0 elsewhere."""
        unit = torch.zeros_like(x)
        unit[..., _channels(self.layer, x.shape[-1])[0]] = 1
        return unit

    def _turned(self, x: Tensor, told: Tensor) -> Tensor:
        pairing = self.layer.pairing if self.keeps_order else "half"
        first, second = _channels(self.layer, x.shape[-1], pairing)
        return rotate(
            x,
            told[..., first],
            told[..., second],
            pairing=self.to,
            rotated=_place(self.layer, x.shape[-1]),
        ).to(told.dtype)


def rotating_functions(module: nn.Module) -> dict[str, Callable[..., Any]]:
    """The functions by which the forward pass of an attention module may rotate, by their names."""
    forward = plain_forward(module)
    return {
        name: forward.__globals__[name]
        for name in forward.__code__.co_names
        if ROTATES.search(name) and isinstance(forward.__globals__.get(name), types.FunctionType)
    }


def plain_forward(module: nn.Module) -> types.FunctionType:
    """The forward function of the module's class, without what decorates it."""
    return inspect.unwrap(type(module).forward)  # type: ignore[return-value]


def with_functions(module: nn.Module, functions: dict[str, Callable[..., Any]]) -> None:
    """Let this one module call other functions; its class and its neighbors keep theirs."""
    # Not through nn.Module's bookkeeping: it is no part of the model's state. A bound method would
    # be pickled by its name, and come back as that of the class, which turns the old pairs.
    object.__setattr__(module, "forward", partial(_forward, module, functions))


# torch.compile looks globals up by the name of their module, where the old functions stand.
@torch.compiler.disable
def _forward(
    module: nn.Module, functions: dict[str, Callable[..., Any]], /, *args: Any, **kwargs: Any
) -> Any:
    """The forward pass of the module's class, with other functions in place of its own."""
    plain = plain_forward(module)
    own = types.FunctionType(
        plain.__code__,
        {**plain.__globals__, **functions},
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    own.__kwdefaults__ = plain.__kwdefaults__
    return own(module, *args, **kwargs)


def without_functions(module: nn.Module) -> None:
    """Let the module call what its class calls."""
    if not is_overridden(module):
        module.__dict__.pop("forward", None)


def is_overridden(module: nn.Module) -> bool:
    """Whether somebody else gave the module a forward pass of its own."""
    return "forward" in vars(module) and not calls_others(module)


def calls_others(module: nn.Module) -> bool:
    """Whether ``with_functions`` was the last to change what the module calls."""
    return getattr(vars(module).get("forward"), "func", None) is _forward


def adapted(
    function: Callable[..., Any], layer: Rotary, to: Pairing, args: tuple, kwargs: dict
) -> OtherPairing:
    """``OtherPairing`` of a function, found out by one of its calls.

    Raises:
        UnknownRotationError: It gives something else than rotated pairs, in an order known here.
    """
    with torch.no_grad():
        out = function(*args, **kwargs)
    outs = out if isinstance(out, tuple | list) else (out,)
    bound = inspect.signature(function).bind(*args, **kwargs)
    given = list(bound.arguments.items())[: len(outs)]
    for (_, x), y in zip(given, outs, strict=True):
        if not isinstance(x, Tensor) or not isinstance(y, Tensor) or x.shape != y.shape:
            raise UnknownRotationError(f"{function.__name__} returns other shapes than it is given")
    name, x = given[0]
    unit = torch.zeros_like(x)
    first, _ = _channels(layer, x.shape[-1])
    unit[..., first[1:2]] = 1
    bound.arguments[name] = unit
    with torch.no_grad():
        told = function(*bound.args, **bound.kwargs)
    told = told[0] if isinstance(told, tuple | list) else told
    reached = set(told.abs().amax(tuple(range(told.ndim - 1))).nonzero().flatten().tolist())
    for keeps in (True, False):
        pairing = layer.pairing if keeps else "half"
        places = {int(each[1]) for each in _channels(layer, x.shape[-1], pairing)}
        if reached and reached <= places:
            return OtherPairing(function, layer, to, keeps, tuple(name for name, _ in given))
    raise UnknownRotationError(
        f"{function.__name__} takes channel {int(first[1])} to {sorted(reached)}"
    )


def _place(layer: Rotary, width: int) -> Rotated:
    return layer.rotated if width == layer.head_dim else "prefix"


def _channels(layer: Rotary, width: int, pairing: Pairing | None = None) -> tuple[Tensor, Tensor]:
    """The first and the second channel of every pair, in a head or in what is rotated of it."""
    count = layer.rotated_dim
    if width not in (count, layer.head_dim):
        raise UnknownRotationError(f"{width} channels are handed over, {layer} was read")
    start = width - count if _place(layer, width) == "suffix" else 0
    places = torch.arange(start, start + count)
    if (pairing or layer.pairing) == "interleaved":
        return places[0::2], places[1::2]
    return places[: count // 2], places[count // 2 :]
