"""Hooks of encodings: attention and encoders do not call encodings as modules, and run none."""

import warnings
from typing import Any

from torch import nn

MAKERS = frozenset(f"torch.nn.utils.{name}" for name in ("weight_norm", "spectral_norm", "prune"))
"""Where torch's hooks are from that make a weight anew before each forward pass."""

PARTS = ("orig", "g", "v", "u")
"""The ends of what they keep a weight in."""


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


def warn_of_hook(encoding: nn.Module) -> None:
    """Say that a hook runs where the encoding itself is called, and nowhere else."""
    kind = type(encoding).__name__
    warnings.warn(
        f"A forward hook of {kind} runs where {kind} itself is called; posenc.attention and "
        f"encoders call its table and encode, and run no hook of it. Hook the encoder's blocks, or "
        f"give another encoding.",
        stacklevel=3,
    )
