"""What a module makes keys with: its weights, and what is set on it."""

import dis
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple
from weakref import finalize

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

PLAIN = frozenset({bool, float, int, str, type(None)})
"""Settings that are told by their values; others by their identity."""

_fused_steps: dict[int, int] = {}
"""How often fused optimizers wrote to each weight, past torch's count, by its ``id``."""

_gathered: set[int] = set()
"""Modules whose weights were seen cut among devices, by their ``id``.

``fully_shard`` has whole ones in their place while a pass is under way, or from then on.
"""


class Version(NamedTuple):
    """What a module makes keys with: of each something that is another once it is another.

    Attributes:
        weights: A number of the weights.
        settings: What is set on it and its parts: of each its class, then what is set.
    """

    weights: int
    settings: tuple[object, ...]


class Names(NamedTuple):
    """Where modules of a class keep their settings.

    Attributes:
        ours: Those of our classes, whatever they hold.
        plain: Those of other classes, where numbers, flags and words count: what else they hold
            they may move or build while they run.
    """

    ours: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


_names: dict[type, Names | tuple[()]] = {}
"""Those of each class that was met."""


def version_of_all(*modules: torch.nn.Module) -> Version | None:
    """What is another once a weight of ``modules`` is written to, cast, replaced, or they are set.

    Writes past torch's count are not seen: those through ``weight.data``, be it written to or set
    to another tensor as by ``vector_to_parameters`` and casts to and fro, those into a NumPy array
    of the same memory, those to buffers and to weights that were made in inference mode, which has
    no count, and those to weights that are cut among devices. Those by torch's fused optimizers are
    counted here, from the first call of this in a process on. A weight on the meta device says
    nothing: whoever left it there puts another in its place.

    Settings are, of a class of ours and those that inherit from it, what stands in our public
    names; of another, numbers, flags and words in the names of its constructor's arguments.
    ``training`` and ``dropout`` are none, nor is anything that torch's own modules hold.

    Example:
        >>> from posenc.transformer import Encoder
        >>> encoder = Encoder(4, heads=2, depth=1).requires_grad_(False)
        >>> before = version_of_all(encoder)
        >>> encoder.windows = 3
        >>> after = version_of_all(encoder)
        >>> after.weights == before.weights, after.settings == before.settings
        (True, False)
        >>> encoder.windows = None
        >>> before == version_of_all(encoder)
        True
        >>> _ = encoder.blocks[0].attention.keys.bias.add_(1)
        >>> before == version_of_all(encoder)
        False
    """
    if torch.compiler.is_compiling():
        return None
    _hear_of_fused_steps()
    left, weights, settings = list(modules), [], []
    while left:  # torch's parameters() takes ten times as long, and this is done at each step
        module = left.pop()
        held = module.__dict__
        if held["_modules"]:
            left += [part for part in held["_modules"].values() if part is not None]
        if held["_parameters"] and id(module) not in _gathered:
            weights += _weights_of(module)
        kind = type(module)
        names = _names.get(kind)
        if names is None:
            names = _names[kind] = _names_of_settings(kind, held)
        if not names:
            continue
        settings.append(kind)
        for name in names.ours:
            value = held.get(name)
            settings.append(value if type(value) in PLAIN else _settled(value))
        for name in names.plain:
            value = held.get(name)
            settings.append(value if type(value) in PLAIN else None)
    return Version(hash(tuple(weights)), tuple(settings))


def set_since(before: Version, now: Version) -> str:
    """The first setting that is another one, and whose; nothing where other parts are held.

    Example:
        >>> from posenc.transformer import Encoder
        >>> encoder = Encoder(4, heads=2, depth=1)
        >>> before = version_of_all(encoder)
        >>> encoder.windows = 3
        >>> set_since(before, version_of_all(encoder))
        'windows of Encoder'
    """
    kind, names = None, iter(())
    for old, new in zip(before.settings, now.settings, strict=False):
        if isinstance(new, type):  # no setting is one: of a class its identity is told
            kind, held = new, _names[new]
            names = iter(name for group in held for name in group)
        name = None if new is kind else next(names)
        if old != new:
            return f"{name} of {kind.__name__}" if name and kind else ""
    return ""


def _weights_of(module: torch.nn.Module) -> list[object]:
    """What tells the weights that a module holds itself from others and from what they were."""
    told: list[object] = []
    for weight in module._parameters.values():
        if type(weight) is torch.nn.Parameter:
            if not weight.is_meta:
                who = id(weight)
                try:
                    version = weight._version
                except RuntimeError:  # one of inference has no count
                    version = None
                told += (who, version, weight.dtype, _fused_steps.get(who))
        elif type(weight) is torch.Tensor:
            if not weight.is_inference():
                told.append(_of_another_call(weight))
        elif hasattr(weight, "device_mesh"):  # of which this process holds a part
            _gathered.add(id(module))
            finalize(module, _gathered.discard, id(module))
            return []
    return told


def _names_of_settings(kind: type, held: Iterable[str]) -> Names | tuple[()]:
    if all(each.__module__.startswith(("torch.", "builtins")) for each in kind.__mro__):
        return ()
    makers = {each: vars(each)["__init__"] for each in kind.__mro__ if "__init__" in vars(each)}
    own = [maker for each, maker in makers.items() if each.__module__.startswith("posenc.")]
    none = {"self", "args", "kwargs", "dropout", "training"}
    for each in ("settled", "handed_on", "fixed"):  # which cannot be set
        none |= getattr(kind, each, frozenset())
    ours = {name for maker in own for name in _arguments(maker)}
    if kind.__module__.startswith("posenc."):
        ours |= {name for name in held if name[0] != "_"}
    else:  # beside what a class of somebody else notes: what our constructors write to ``self``
        told = {name for maker in own for name in _stored(maker)}
        ours |= {name for name in held if name[0] != "_" and name in told}
    others = {name for each in makers.values() for name in _arguments(each)} - ours
    names = Names(tuple(ours - none), tuple(others - none))
    return names if any(names) else ()


def _arguments(maker: Callable[..., object]) -> Iterable[str]:
    """Names of what a constructor takes, where it tells them."""
    try:
        return inspect.signature(maker).parameters
    except (TypeError, ValueError):  # a ``partialmethod``, or one in C
        return ()


def _stored(maker: Callable[..., object]) -> Iterable[str]:
    """Names of what a constructor of ours sets on its object."""
    steps = dis.get_instructions(inspect.unwrap(maker))
    return [step.argval for step in steps if step.opname == "STORE_ATTR"]


def _settled(value: object) -> object:
    """What tells a setting from another: plain values by what they are, all else by who."""
    if type(value) in PLAIN:
        return value
    if type(value) in (list, tuple):
        return tuple(map(_settled, value))  # type: ignore[arg-type]
    return id(value)


@cache
def _hear_of_fused_steps() -> None:
    """Once in a process, and not before a cache is filled there."""
    register_optimizer_step_pre_hook(_note_fused_step)  # hooks of its own may clear gradients
    register_optimizer_step_post_hook(_note_fused_step)  # which a closure may make in the step


def _note_fused_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        for weight in group["params"] if group.get("fused") else ():
            if weight.grad is None:
                continue
            known = _fused_steps.get(id(weight), 0)
            if not known:
                finalize(weight, _fused_steps.pop, id(weight), None)
            _fused_steps[id(weight)] = known + 1


def _of_another_call(weight: torch.Tensor) -> tuple[int, int]:
    """What tells the weights of one ``functional_call`` from others, views being made anew."""
    try:
        return weight.data_ptr(), weight._version
    except RuntimeError:  # a transform's, which have no memory of their own
        return 0, 0
