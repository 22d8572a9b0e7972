"""Who made the keys that a cache holds."""

import inspect
from collections.abc import Iterable
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

_names: dict[type, tuple[str, ...]] = {}
"""Where modules of a class keep their settings."""

_fused_steps: dict[int, int] = {}
"""How often fused optimizers wrote to each weight, past torch's count, by its ``id``."""

_gathered: set[int] = set()
"""Modules whose weights were seen cut among devices, by their ``id``.

``fully_shard`` has whole ones in their place while a pass is under way, or from then on.
"""


class Identity:
    """Who a module is: a copy of it is another, and so is what was unpickled.

    A cache that is copied or pickled together with its module goes on serving that module's copy.
    """

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Identity":
        copied = memo[id(self)] = Identity()
        for maker in memo.get((Maker, id(self)), ()):  # of caches that were copied before
            maker.identity, maker.version = copied, None
        return copied


class Version(NamedTuple):
    """What a module makes keys with: of each a number that is another once it is another.

    Attributes:
        weights: Of the weights.
        settings: Of what is set on it and its parts.
    """

    weights: int
    settings: int


class Maker:
    """Who made the keys that a cache holds, and what with.

    Args:
        identity: Of the module.
        version: Of what makes keys and values, as of ``version_of_all``; ``None``: nothing is known
            of that, as in a graph.
    """

    def __init__(self, identity: Identity, version: Version | None = None) -> None:
        self.identity, self.version = identity, version

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Maker":
        copied = memo.get(id(self.identity))
        if isinstance(copied, Identity):  # with its module, whose weights begin to count anew
            return Maker(copied)
        alone = Maker(self.identity, self.version)
        memo.setdefault((Maker, id(self.identity)), []).append(alone)  # its module may follow
        return alone

    def __getstate__(self) -> dict[str, object]:
        return {"identity": self.identity, "version": None}


def version_of_all(*modules: torch.nn.Module) -> Version | None:
    """What is another once a weight of ``modules`` is written to or replaced, or they are set.

    A weight is replaced, too, where ``weight.data`` is set, as a cast does. Writes past torch's
    count are not seen, as those into ``weight.data`` or a NumPy array of its memory, nor those to
    buffers, to weights that were made in inference mode, which has no count, and to those that are
    cut among devices. Those by torch's fused optimizers are counted here, from the first call of
    this in a process on.

    Settings are, of a class of ours, what stands in public names; of another, what stands in the
    names of its constructor's arguments. ``training`` and ``dropout`` are none, nor is anything
    that torch's own modules hold.

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
        left += [part for part in module._modules.values() if part is not None]
        before = len(weights)
        for weight in () if id(module) in _gathered else module._parameters.values():
            if type(weight) is torch.nn.Parameter:
                weights.append((id(weight), _fused_steps.get(id(weight)), _written(weight)))
            elif type(weight) is torch.Tensor and not weight.is_inference():
                weights.append(_of_another_call(weight))
            elif hasattr(weight, "device_mesh"):  # of which this process holds a part
                _gathered.add(id(module))
                finalize(module, _gathered.discard, id(module))
                del weights[before:]
                break
        kind, held = type(module), vars(module)
        names = _names.get(kind)
        if names is None:
            names = _names[kind] = _names_of_settings(kind, held)
        for name in names:
            value = held.get(name)
            settings.append(value if type(value) in PLAIN else _settled(value))
    return Version(hash(tuple(weights)), hash(tuple(settings)))


def _names_of_settings(kind: type, held: Iterable[str]) -> tuple[str, ...]:
    if kind.__module__.startswith("torch."):
        return ()
    makers = [vars(each)["__init__"] for each in kind.__mro__[:-1] if "__init__" in vars(each)]
    names = {name for maker in makers for name in inspect.signature(maker).parameters}
    if kind.__module__.startswith("posenc."):
        names |= {name for name in held if name[0] != "_"}
    for each in ("settled", "handed_on", "fixed"):  # which cannot be set
        names -= getattr(kind, each, frozenset())
    return tuple(names - {"self", "args", "kwargs", "dropout", "training"})


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


def _written(weight: torch.nn.Parameter) -> tuple[object, ...]:
    """The storage of a weight, and how often it was written to, as far as torch counts.

    ``weight.data = ...`` gives it another storage, as a cast does, and its memory alone moves where
    ``fully_shard`` frees and gathers it.
    """
    try:
        return weight.untyped_storage()._cdata, weight.storage_offset(), weight._version
    except RuntimeError:  # one of inference has no count; one of a transform has no storage
        return (weight.untyped_storage()._cdata,) if weight.is_inference() else ()


def _of_another_call(weight: torch.Tensor) -> tuple[int, int]:
    """What tells the weights of one ``functional_call`` from others, views being made anew."""
    try:
        return weight.data_ptr(), weight._version
    except RuntimeError:  # a transform's, which have no memory of their own
        return 0, 0


def same_maker(kept: Maker | None, given: Maker, what: str) -> Maker:
    """What a cache notes of the module that it is given to.

    Raises:
        ValueError: Another module made the keys that are kept, or this one with other weights or
            settings.

    Example:
        >>> kept = same_maker(None, Maker(Identity()), "encoder")
        >>> same_maker(kept, Maker(kept.identity), "encoder") is kept
        True
        >>> same_maker(kept, Maker(Identity()), "encoder")
        Traceback (most recent call last):
        ...
        ValueError: The cache holds keys that another encoder made, or this one with other \
encodings. Give each a cache of its own, and begin anew where it changes. Where this one would \
have made the same keys (it is a copy of equal weights, or the cache came from a file), call \
cache.hand_over() first.
    """
    if kept is None:
        return given
    if kept.identity is not given.identity:
        raise ValueError(
            f"The cache holds keys that another {what} made, or this one with other encodings. "
            f"Give each a cache of its own, and begin anew where it changes. Where this one would "
            f"have made the same keys (it is a copy of equal weights, or the cache came from a "
            f"file), call cache.hand_over() first."
        )
    if kept.version is None:
        return kept if given.version is None else given
    if given.version in (None, kept.version):
        return kept
    if given.version.weights != kept.version.weights:
        raise ValueError(
            f"The cache holds keys that this {what} made before its weights were written to, as "
            f"an optimizer or load_state_dict does. Fill a cache anew; where older keys are meant, "
            f"as in a memory kept while training, call cache.hand_over() first."
        )
    raise ValueError(
        f"The cache holds keys that this {what} made before it or a part of it was set to "
        f"something else, as a window or a scale. Set that back, or fill a cache anew; where older "
        f"keys are meant, call cache.hand_over() first."
    )
