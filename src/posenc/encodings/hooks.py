"""Hooks of encodings and of layers inside them, which nobody calls: attention reads both."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from posenc.guards import hooked

MAKERS = frozenset(f"torch.nn.utils.{name}" for name in ("weight_norm", "spectral_norm", "prune"))
"""Where torch's hooks are from that make a weight anew before each forward pass."""

PARTS = ("orig", "g", "v", "u")
"""The ends of what they keep a weight in."""

LAYERS: dict[str, tuple[str, dict[str, type[nn.Module]]]] = {
    "FIRE": ("table", {"expand": nn.Linear, "contract": nn.Linear}),
    "SwinV2Bias": (
        "table",
        {"mlp": nn.Sequential, "mlp.0": nn.Linear, "mlp.1": nn.ReLU, "mlp.2": nn.Linear},
    ),
    "DAPE": ("encode", {"expand": nn.Linear, "contract": nn.Linear}),
    "DAPEv2": ("encode", {"expand": nn.Conv1d, "contract": nn.Conv1d}),
}
"""Encodings with layers inside: the method that reads their weights, and what each layer is."""


def refuse_maker(encoding: nn.Module, hook: Any) -> None:
    """Refuse a hook that makes a weight, which would stay as it is now, and put the weight back.

    Raises:
        TypeError: It is one of torch's.

    Example:
        >>> from torch.nn.utils import prune
        >>> from posenc import Learned
        >>> _ = prune.random_unstructured(Learned(4, max_len=8), "weight", 0.5)
        Traceback (most recent call last):
        ...
        TypeError: The hook of RandomUnstructured makes weight before each forward pass, and \
attention and encoders call table and encode of Learned: it would stay as it is. The weight is as \
before. Use torch.nn.utils.parametrize, as torch.nn.utils.parametrizations do, or write to the \
weight itself.
    """
    modules = {kind.__module__ for kind in type(hook).__mro__}
    if MAKERS.isdisjoint(modules):
        return
    name = getattr(hook, "name", None) or hook._tensor_name
    _put_back(encoding, name, is_pruned="torch.nn.utils.prune" in modules)
    raise TypeError(
        f"The hook of {type(hook).__name__} makes {name} before each forward pass, and attention "
        f"and encoders call table and encode of {type(encoding).__name__}: it would stay as it is. "
        f"The weight is as before. Use torch.nn.utils.parametrize, as "
        f"torch.nn.utils.parametrizations do, or write to the weight itself."
    )


def _put_back(encoding: nn.Module, name: str, *, is_pruned: bool) -> None:
    """The parameter as it was, without what was kept in its place."""
    held = encoding._parameters
    vars(encoding).pop(name, None)
    encoding._buffers.pop(f"{name}_mask", None)
    if is_pruned:  # torch itself puts a weight back where pruning ends in an error
        return
    whole, direction = held.get(f"{name}_orig"), held.get(f"{name}_v")
    if whole is None and direction is not None:
        whole = nn.Parameter(direction.detach())
    for end in PARTS:
        for place in (held, encoding._buffers):
            place.pop(f"{name}_{end}", None)
    encoding.register_parameter(name, whole)


def warn_of_hook(encoding: nn.Module, what: str = "A forward hook") -> None:
    """Say that a hook runs where the encoding itself is called, and nowhere else."""
    kind = type(encoding).__name__
    warnings.warn(
        f"{what} of {kind} runs where {kind} itself is called; posenc.attention and "
        f"encoders call its table and encode, and run no hook of it. Hook the encoder's blocks, or "
        f"give another encoding.",
        stacklevel=3,
    )


def held_to_layers(
    method: Callable[..., Any], layers: dict[str, type[nn.Module]]
) -> Callable[..., Any]:
    """A method that reads weights of layers, held to layers that compute by their weights alone.

    Raises:
        TypeError: By that method: a layer was replaced, as by an adapter, or has hooks, or a
            forward pass of its own. None of these would be called.

    Example:
        >>> from posenc import FIRE
        >>> fire = FIRE(heads=2)
        >>> _ = fire.contract.register_forward_hook(lambda layer, given, made: 2 * made)
        >>> fire.table([0], [0])
        Traceback (most recent call last):
        ...
        TypeError: contract of FIRE has a hook, or a forward pass of its own, which would not run: \
the weights of its Linear are read, in the dtype of the scores. Take it away, or change the \
weights themselves, as torch.nn.utils.parametrize does.
    """

    @wraps(method)
    def held(self: nn.Module, *given: Any, **named: Any) -> Any:
        for name, kind in layers.items():
            _check_layer(self, name, kind, layers)
        return method(self, *given, **named)

    return held


def _check_layer(
    encoding: nn.Module, name: str, kind: type[nn.Module], layers: dict[str, type[nn.Module]]
) -> None:
    layer = encoding.get_submodule(name)
    told = f"{name} of {type(encoding).__name__}"
    if type(layer) is not kind and not (isinstance(layer, kind) and is_parametrized(layer)):
        raise TypeError(
            f"{told} is a {type(layer).__name__}, which would not be called: the weights of a "
            f"{kind.__name__} are read there. Leave the {kind.__name__} in its place (adapters "
            f"have lists of modules that they are not put on), or change its weights."
        )
    if isinstance(layer, nn.Sequential):
        inside = [each.rpartition(".")[2] for each in layers if each.startswith(f"{name}.")]
        if list(layer._modules) != inside:
            raise TypeError(
                f"{told} holds {len(layer)} layers, and {len(inside)} are read. Leave it as it was "
                f"built."
            )
    if hooked(layer):
        raise TypeError(
            f"{told} has a hook, or a forward pass of its own, which would not run: the weights of "
            f"its {kind.__name__} are read, in the dtype of the scores. Take it away, or change "
            f"the weights themselves, as torch.nn.utils.parametrize does."
        )
