"""Where a model computes angles: its rotary modules, by what they take and not by their names."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from posenc.interop.patching.angles import ExactAngles
from posenc.interop.patching.rows import ExactRows

TAKEN = {"x", "hidden_states", "position_ids", "layer_type"}
"""What the forward pass of a rotary module takes."""

TABLE = "embed_positions"
"""The name of the table that GPT-J and CodeGen keep in their attention."""


@dataclass(frozen=True)
class Place:
    """One place of a model.

    Attributes:
        path: Of the module in the model.
        parent: The module that holds it.
        name: Under which it is held.
        module: What stands there: a rotary module, or attention that keeps a table itself.
        config: The configuration that it was built from; None where nothing holds one.
    """

    path: str
    parent: nn.Module
    name: str
    module: nn.Module
    config: Any

    @property
    def keeps_rows(self) -> bool:
        """Whether this is attention with a table of its own."""
        return keeps_rows(self.module)

    @property
    def takes_layer_type(self) -> bool:
        """Whether it is asked for layers of a type."""
        return "layer_type" in names_of(self.module)


def places_of(model: nn.Module) -> Iterator[Place]:
    """All places of a model, ours where it is patched."""
    for path, parent in model.named_modules():
        owner = getattr(parent, "config", None) or getattr(model, "config", None)
        for name, module in parent._modules.items():
            if module is not None and (is_rotary(module) or keeps_rows(module)):
                config = getattr(module, "config", None) or owner
                yield Place(f"{path}.{name}".lstrip("."), parent, name, module, config)


def is_rotary(module: nn.Module) -> bool:
    """Whether a module may be a rotary one: it has no parameters and makes angles of positions."""
    if isinstance(module, ExactAngles):
        return True
    if next(module.parameters(), None) is not None or next(module.children(), None) is not None:
        return False
    names = names_of(module)
    return "position_ids" in names and names <= TAKEN and len(names) > 1


def keeps_rows(module: nn.Module) -> bool:
    """Whether a module is attention with a table of sines and cosines of its own."""
    table = module._buffers.get(TABLE)
    return table is not None and table.ndim == 2 and "position_ids" in names_of(module)


def names_of(module: nn.Module) -> set[str]:
    """The names of what the forward pass of a module takes."""
    return set(inspect.signature(type(module).forward).parameters) - {"self"}


def exact_rows_of(module: nn.Module) -> ExactRows | None:
    """Our hook before attention; None where there is none."""
    hooks = module._forward_pre_hooks.values()
    return next((hook for hook in hooks if isinstance(hook, ExactRows)), None)


def is_patched(place: Place) -> bool:
    """Whether our encoding is there."""
    return isinstance(place.module, ExactAngles) or exact_rows_of(place.module) is not None


def device_of(module: nn.Module) -> torch.device | None:
    """Where the parameters of a module lie."""
    return next((each.device for each in module.parameters()), None)
