"""Whether attention gives the same with permuted weights and the rotation of the other pairing."""

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.modes import in_evaluation
from posenc.interop.weights.orders import RowOrder
from posenc.interop.weights.rotations import (
    OtherPairing,
    UnknownRotationError,
    adapted,
    is_overridden,
    rotating_functions,
    with_functions,
    without_functions,
)
from posenc.numerics.pairing import Pairing

TOKENS = 8
"""Of the row that is measured with: enough for every distance to turn the fastest pairs."""

EQUAL, APART = 1e-5, 1e-3
"""Softmax in float32 leaves 1e-7 of the outputs; a wrong order leaves a tenth of them and more."""

Call = tuple[tuple, dict[str, Any]]


@dataclass(frozen=True)
class Attention:
    """One module that rotates.

    Attributes:
        path: In the model.
        module: Itself.
        layer: Its encoding, in the pairing of its code.
        orders: How its tensors are permuted, by their names in it.
    """

    path: str
    module: nn.Module
    layer: Rotary
    orders: dict[str, RowOrder]

    @property
    def kind(self) -> tuple:
        """What modules that need one measurement for all have in common."""
        shapes = tuple((name, tuple(x.shape)) for name, x in self.module.named_parameters())
        return type(self.module), repr(self.layer), shapes, tuple(self.orders.items())


def measure(
    model: nn.Module, found: Sequence[Attention], to: Pairing
) -> list[tuple[Attention, dict[str, Callable[..., Any]]]]:
    """For each module, the functions of the pairing ``to`` that it must call.

    Raises:
        ValueError: With permuted weights and these functions, attention gives something else; or
            no such measurement is possible.
    """
    check_own_forward(found)
    for each in found:  # what was changed before counts from the model's own
        without_functions(each.module)
    kinds = {each.kind: each for each in found}
    calls = _calls(model, list(kinds.values()))
    functions = {}
    for kind, each in kinds.items():
        try:
            functions[kind] = _measured(each, calls[each.path], to)
        except UnknownRotationError as error:
            raise ValueError(_refusal(each, str(error))) from None
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            why = f"it could not be run alone to be measured ({type(error).__name__}: {error})"
            raise ValueError(_refusal(each, why)) from error
    return [(each, functions[each.kind]) for each in found]


def check_own_forward(found: Sequence[Attention]) -> None:
    """Refuse modules whose forward pass is not that of their class, nor of a conversion.

    Raises:
        ValueError: One of them; all are as they were.
    """
    for each in found:
        if is_overridden(each.module):
            raise ValueError(
                _refusal(each, "it has a forward pass of its own, set on it; remove that first")
            )


def _measured(each: Attention, call: Call, to: Pairing) -> dict[str, Callable[..., Any]]:
    copy = _random_copy(each.module)
    args, kwargs = _wide(call[0]), _wide(call[1])
    wanted, functions = _watched(copy, each.layer, to, args, kwargs)
    tensors = dict(copy.named_parameters())
    with torch.no_grad():
        for name, order in each.orders.items():
            tensors[name].copy_(order.converted(tensors[name], to))
        without_functions(copy)
        blind = _first(copy(*args, **kwargs))
        with_functions(copy, functions)
        given = _first(copy(*args, **kwargs))
    size = wanted.abs().max()
    if (blind - wanted).abs().max() <= APART * size:
        raise ValueError(_refusal(each, "its outputs do not tell one pairing from the other"))
    if (share := float((given - wanted).abs().max() / size)) > EQUAL:
        raise ValueError(_refusal(each, f"its outputs would change by {share:.2g} of their size"))
    return functions


def _watched(
    module: nn.Module, layer: Rotary, to: Pairing, args: tuple, kwargs: dict
) -> tuple[Tensor, dict[str, Callable[..., Any]]]:
    """What the module gives, and a function of the other pairing for each one that it called."""
    made: dict[str, OtherPairing] = {}

    def watching(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            found = adapted(function, layer, to, given, named)
            if made.setdefault(name, found) != found:
                raise UnknownRotationError(f"{name} is called in two manners")
            return function(*given, **named)

        return call

    functions = rotating_functions(module)
    with_functions(module, {name: watching(name, each) for name, each in functions.items()})
    with torch.no_grad():
        out = _first(module(*args, **kwargs))
    if not made:
        raise UnknownRotationError("its forward pass calls no function that rotates")
    return out, dict(made)


def _calls(model: nn.Module, found: Sequence[Attention]) -> dict[str, Call]:
    """What each module is given in a run over a few tokens."""
    seen: dict[str, Call] = {}
    hooks = [
        each.module.register_forward_pre_hook(
            lambda _, args, kwargs, path=each.path: seen.setdefault(path, (args, kwargs)) and None,
            with_kwargs=True,
        )
        for each in found
    ]
    device = next(model.parameters()).device
    ids = torch.arange(TOKENS, device=device)[None]
    heeded = inspect.signature(model.forward).parameters
    given = {"use_cache": False} if "use_cache" in heeded else {}
    try:
        with torch.no_grad(), in_evaluation(model):
            model(input_ids=ids, **given)
    except Exception as error:
        raise ValueError(
            f"{type(model).__name__} could not be run over {TOKENS} tokens to be measured: {error}."
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    if missing := [each.path for each in found if each.path not in seen]:
        raise ValueError(f"{missing[0]} did not run; what it does could not be measured.")
    return seen


def _random_copy(module: nn.Module) -> nn.Module:
    """The module with random weights in float64, so that every channel counts."""
    if getattr(getattr(module, "config", None), "_attn_implementation", "") not in SERVED:
        raise UnknownRotationError(
            "its attention cannot be run in float64: load it with attn_implementation='eager' or "
            "'sdpa'"
        )
    copy = deepcopy(module).double().eval()
    drawn = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in copy.parameters():
            numbers = torch.randn(each.shape, generator=drawn, dtype=torch.float64)
            scale = each.shape[-1] ** -0.5 if each.ndim > 1 else 0.5
            each.copy_(numbers * scale + (each.ndim < 2))
    return copy


SERVED = ("eager", "sdpa", "", None)


def _wide(given: Any) -> Any:
    """Floating tensors in float64, the hidden states among them random; and no cache.

    The run that these were given in has filled it, so that a second one would see its keys.
    """
    if hasattr(given, "get_seq_length"):
        return None
    if isinstance(given, Tensor):
        if not given.is_floating_point():
            return given
        if given.ndim == 3 and given.shape[1] == TOKENS:
            drawn = torch.Generator().manual_seed(1)
            if not _is_table(given):
                made = torch.randn(given.shape, generator=drawn, dtype=torch.float64)
                return made.to(given.device)
        return given.double()
    if isinstance(given, dict):
        return {name: _wide(value) for name, value in given.items()}
    if isinstance(given, tuple | list):
        return type(given)(_wide(value) for value in given)
    return given


def _is_table(x: Tensor) -> bool:
    """Whether these are cosines or sines: nothing is random about those."""
    first = x[:, 0]
    return bool((first == 0).all() or (first == first.flatten()[0]).all())


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple | list) else out


def _refusal(each: Attention, why: str) -> str:
    return (
        f"{each.path} ({type(each.module).__name__}) cannot be converted: {why}. Nothing was "
        f"changed. Weights of a layout that you know can be permuted with RowOrder."
    )
