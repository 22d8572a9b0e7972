"""A loaded model in the other pairing: weights permuted, its rotation changed, both measured."""

import inspect
import types
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.changes import Undoable, in_evaluation
from posenc.interop.configurations import read
from posenc.interop.oracle.watching import Record, watched
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.rotary_config import read_layers_of
from posenc.interop.weights.checkpoint import MARK, PLACE, RowOrders, row_orders
from posenc.numerics.pairing import Pairing, checked_pairing, convert_channels

EQUAL, APART = 1e-5, 1e-3
"""Softmax in float32 leaves 1e-7 of the outputs; a wrong order leaves a tenth of them and more."""

Functions = dict[str, Callable[..., Any]]


@dataclass(eq=False, repr=False)
class ConvertedPairing(Undoable):
    """What ``convert_pairing`` did; as a context manager it undoes itself."""

    model: nn.Module
    to: Pairing  #: that its weights have
    orders: RowOrders  #: of the tensors that were permuted
    before: Pairing  #: that they had

    def undo(self) -> None:
        """Bring the weights back to the pairing that they had, bit for bit."""
        convert_pairing(self.model, to=self.before)
        self.to = self.before


def convert_pairing(model: nn.Module, *, to: Pairing) -> ConvertedPairing:
    """Bring the queries and keys of a whole model into the pairing ``to``, in place.

    Rows of projections change places (see ``row_orders``), and each attention module then rotates
    pairs of the other kind. Logits stay, up to the rounding of sums in another order.
    ``model.state_dict()`` is what a framework of that pairing loads, and keys in caches have it.

    Before anything is changed, attention is run in both ways in float64, on a copy with random
    weights of one layer of each kind. A model whose outputs are not the same, or that is quantized,
    is refused with a ``ValueError``. ``torch.compile`` leaves converted attention as it is.

    The configuration notes the pairing as ``posenc_pairing``, which plain transformers does not
    read: after loading such a model, call ``rotate_as_converted``.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaForCausalLM(config).eval().double(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> with convert_pairing(model, to="interleaved"):
        ...     torch.allclose(model(ids).logits, before, atol=1e-6)
        True
    """
    known = read(model.config)
    code = pairing_of_code(known)
    before = checked_pairing(known.values.get(MARK) or code)
    if checked_pairing(to) == before:
        check_turned(model)
        return ConvertedPairing(model, to, {}, before)
    orders = _turned(model, to)
    with torch.no_grad():
        for name, order in orders.items():
            weight = model.get_parameter(name)
            weight.copy_(order.converted(weight, to))
    config: Any = model.config.get_text_config()  # type: ignore[union-attr]
    if to == code:
        vars(config).pop(MARK, None)
    else:
        setattr(config, MARK, to)
    return ConvertedPairing(model, to, orders, before)


def rotate_as_converted(model: nn.Module) -> nn.Module:
    """Give a loaded model the rotation of the ``posenc_pairing`` that its configuration has.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        ...                      posenc_pairing="interleaved")
        >>> model = rotate_as_converted(LlamaModel(config))
    """
    to = read(model.config).values.get(MARK)
    if to is None:
        raise ValueError(f"The configuration has no {MARK}; use convert_pairing.")
    if not any(map(calls_others, model.modules())):
        _turned(model, checked_pairing(to))
    return model


def check_turned(model: nn.Module) -> None:
    """Refuse converted weights whose model rotates by its own code."""
    if any(map(calls_others, model.modules())):
        return
    for part in model.modules():
        config: Any = getattr(part, "config", None)
        marked = getattr(config, MARK, None)
        if marked is not None and marked != pairing_of_code(read(config)):
            raise ValueError(
                f"The weights of {type(part).__name__} have the pairing {marked!r} and its code "
                f"has the other one. Call rotate_as_converted(model) first."
            )


def _turned(model: nn.Module, to: Pairing) -> RowOrders:
    """Change the rotation of every layer to ``to``, or back to its own; and the rows for it."""
    known = read(model.config)
    # Without duplicates: a projection that two layers share is permuted once.
    orders = row_orders(model.config, {name: x.shape for name, x in model.named_parameters()})
    for name in orders:
        if not model.get_parameter(name).is_floating_point():
            raise ValueError(f"{name} is no floating parameter; quantized models are not served.")
    if to == pairing_of_code(known):
        for module in filter(calls_others, model.modules()):
            del vars(module)["forward"]
        return orders
    layers: Any = read_layers_of(known)
    places = {each["attention"]: each["layer"] for each in map(PLACE.match, orders) if each}
    modules, functions, path = {}, {}, type(model).__name__
    try:
        with in_evaluation(model):
            record = watched(model)
        for path, layer in places.items():
            module, rotary = model.get_submodule(path), layers[int(layer)].rotary
            modules[module] = kind = repr(module), repr(rotary)  # measured once for all of a kind
            if kind not in functions:
                functions[kind] = _measured(path, module, rotary, orders, record, to)
    except Exception as error:  # whatever a model raises
        raise ValueError(f"{path} cannot be converted: {type(error).__name__}: {error}") from error
    for module, kind in modules.items():
        with_functions(module, functions[kind])
    return orders


@dataclass(frozen=True)
class OtherPairing:
    """A model's function that rotates, for channels that come in the pairing ``to``."""

    function: Callable[..., Any]
    layer: Rotary
    to: Pairing
    keeps_order: bool  # of channels; a function that does not pairs neighbors and gives halves
    contents: tuple[str, ...]  # the names of the arguments that it rotates

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The contents rotated, whole heads or their rotated part; channels keep their order."""
        layer, bound = self.layer, inspect.signature(self.function).bind(*args, **kwargs)
        convert = partial(convert_channels, rotated_dim=layer.rotated_dim, rotated=layer.rotated)
        code: Pairing = "half" if self.to == "interleaved" else "interleaved"
        for name in self.contents:
            bound.arguments[name] = convert(bound.arguments[name], code)
        out = self.function(*bound.args, **bound.kwargs)
        return tree_map(partial(convert, to=self.to), out) if self.keeps_order else out


@torch.no_grad()
def _measured(
    path: str, module: nn.Module, rotary: Rotary, orders: RowOrders, record: Record, to: Pairing
) -> Functions:
    """The functions with which permuted random weights give the outputs of those in order."""
    if "forward" in vars(module):
        raise ValueError("a forward pass of its own was set on it; remove that first")
    plain: Any = inspect.unwrap(type(module).forward)
    named, functions = plain.__code__.co_names, Functions()
    for call in record.rotated:
        rotates = call.path == path and call.name in named
        if rotates and (rotation := call.rotation(record.positions)) is not None:
            how = not rotation.reorders, call.contents
            functions[call.name] = OtherPairing(call.function, rotary, to, *how)
    if not functions:
        raise ValueError("its forward pass calls no function that rotates")
    args, kwargs = tree_map(_wide, record.given[path])
    copy = _random_copy(module)
    wanted = _first(copy(*args, **kwargs))
    for name, weight in copy.named_parameters():
        if order := orders.get(f"{path}.{name}"):
            weight.copy_(order.converted(weight, to))
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
        mean, scale = (0.0, each.shape[-1] ** -0.5) if each.ndim > 1 else (1.0, 0.5)
        each.copy_(torch.randn(each.shape, generator=drawn, dtype=torch.float64) * scale + mean)
    return copy


def _wide(given: Any) -> Any:
    """In float64; and no cache, being full."""
    if isinstance(given, Tensor) and given.is_floating_point():
        return given.double()
    return None if hasattr(given, "get_seq_length") else given


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple | list) else out


def with_functions(module: nn.Module, functions: Functions) -> None:
    """Let this one module call other functions; its class and its neighbors keep theirs."""
    # A bound method would be pickled by its name, and come back as that of the class.
    vars(module)["forward"] = partial(_forward, module, functions)


# torch.compile looks globals up by the name of their module, where the old functions stand.
@torch.compiler.disable
def _forward(module: nn.Module, functions: Functions, /, *args: Any, **kwargs: Any) -> Any:
    """The forward pass of the module's class, with other functions in place of its own."""
    plain: Any = inspect.unwrap(type(module).forward)
    names = {**plain.__globals__, **functions}
    own = types.FunctionType(
        plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__
    )
    own.__kwdefaults__ = plain.__kwdefaults__
    return own(module, *args, **kwargs)


def calls_others(module: nn.Module) -> bool:
    """Whether ``with_functions`` was the last to change what the module calls."""
    return getattr(vars(module).get("forward"), "func", None) is _forward
