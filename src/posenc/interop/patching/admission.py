"""Which encoding a place has: the one that its configuration means, if that is measured there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.patching import measuring
from posenc.interop.patching.angles import ALL
from posenc.interop.patching.forms import OF_MODULES, ROWS, Form
from posenc.interop.patching.measuring import TABLE, Place
from posenc.interop.rope_layers import checked
from posenc.interop.rotary_config import RotaryLayer, layers_by_type, read_layers_of

GROWING = ("dynamic", "longrope")
"""Rope types that a model switches by the longest position it has seen."""


class Unread(ValueError):
    """A configuration does not say what a place gives."""


class Unlike(ValueError):
    """What a place gives is not what its configuration means."""


@dataclass(frozen=True)
class Measurement:
    """What was measured in one place, for layers of one type.

    Attributes:
        path: Of the place in the model.
        layer_type: Of the layers; None where all are alike.
        positions: Where it was measured.
        difference: The largest that was found in a cosine or sine, the float32 error of the model
            at far positions included.
        form: The name of the arrangement.
    """

    path: str
    layer_type: str | None
    positions: tuple[int, ...]
    difference: float
    form: str


@dataclass(frozen=True)
class Admitted:
    """What was found in one place."""

    place: Place
    config: Configuration
    layers: Mapping[str, RotaryLayer]  # by type, or under "all"
    form: Form
    dtype: torch.dtype | None  # of the angles; None: that of the hidden state
    measurements: tuple[Measurement, ...]


def admitted(place: Place, length: int | None) -> Admitted:
    """What stands in a place, measured."""
    config, layers = _meant(place, length)
    try:
        module = measuring.sound(place.module, place.config)
    except ValueError as error:
        raise Unlike(f"{place.path}: {error}") from None
    if place.takes_layer_type and set(layers) != {None}:
        found = {str(kind): _measured(place, module, kind, [layer], length)
                 for kind, layer in layers.items()}  # fmt: skip
    else:
        found = {ALL: _measured(place, module, None, _distinct(config, layers, length), length)}
    forms = {form for _, form, _ in found.values()}
    if len(forms) > 1:
        raise Unlike(f"{place.path} gives angles of different layer types in different forms.")
    return Admitted(
        place,
        config,
        {kind: layer for kind, (layer, _, _) in found.items()},
        forms.pop(),
        _dtype(place, module, found),
        tuple(measurement for _, _, measurement in found.values()),
    )


def _meant(place: Place, length: int | None) -> tuple[Configuration, dict[Any, RotaryLayer]]:
    """The configuration of a place, read, and what it means for layers of each type."""
    if place.config is None:
        raise Unread("nothing holds the configuration that it was built from")
    try:
        config = checked(read(place.config))
        layers = layers_by_type(config, length)
    except (ValueError, TypeError) as error:
        raise Unread(str(error)) from None
    used = set(layer_types(config) or layers)
    layers = {kind: layer for kind, layer in layers.items() if kind is None or kind in used}
    if not layers:
        raise Unread("its configuration has no layers that rotate")
    return config, layers


def _distinct(
    config: Configuration, layers: Mapping[Any, RotaryLayer], length: int | None
) -> list[RotaryLayer]:
    """What one module may stand for, where it is not asked for a type of layers."""
    found = {repr(layer.encoding): layer for layer in layers.values()}
    if "layer_rope_theta" in config.values:  # a base of their own, layer by layer
        own = [layer for layer in read_layers_of(config, length) if layer]
        found |= {repr(layer.encoding): layer for layer in own}
    return list(found.values())


Fitting = tuple[RotaryLayer, Form, Measurement]


def _measured(
    place: Place,
    module: nn.Module,
    kind: str | None,
    candidates: list[RotaryLayer],
    length: int | None,
) -> Fitting:
    """The first of the candidates that is found in a place."""
    told = []
    for layer in candidates:
        positions = measuring.positions_for(layer.encoding, longest_of(layer, length))
        try:
            if place.keeps_rows:
                table: Tensor = module._buffers[TABLE]  # type: ignore[assignment]
                positions = positions[:, positions[0] < len(table)]
                given, forms = table[positions], (ROWS,)
            else:
                given, forms = measuring.asked(module, positions, kind), OF_MODULES
        except Exception as error:  # whatever the code of a model raises
            told.append(f"it raises {type(error).__name__}: {error}")
            continue
        found = measuring.compared(given, layer.encoding, positions, forms)
        if not place.keeps_rows and measuring.mixes_axes(module, layer.encoding, positions, kind):
            told.append("it mixes positions of three axes, and one axis was read")
        elif found.form is not None:
            seen = tuple(positions.reshape(-1, positions.shape[-1])[0].tolist())
            name = found.form.name
            return layer, found.form, Measurement(place.path, kind, seen, found.difference, name)
        else:
            told.append(found.told)
    layers = f", of layers of type {kind}," if kind else ""
    raise Unlike(
        f"{place.path} ({type(place.module).__name__}){layers} is not what its configuration "
        f"means: {'; '.join(told)}."
    )


def longest_of(layer: RotaryLayer, length: int | None) -> int | None:
    """A bound of the positions at which a model and its configuration can be compared."""
    if layer.rope.kind not in GROWING:
        return None
    return length or layer.rope.trained_length


def _dtype(place: Place, module: nn.Module, found: Mapping[str, Fitting]) -> torch.dtype | None:
    """The dtype in which a module gives angles whatever it is asked in; None: in that."""
    if place.keeps_rows:
        return None
    kind, (layer, _, _) = next(iter(found.items()))
    positions = measuring.positions_for(layer.encoding, 8)
    half, full = (
        measuring.parts(measuring.asked(module, positions, None if kind == ALL else kind, dtype))[0]
        for dtype in (torch.bfloat16, torch.float32)
    )
    return None if half.dtype != full.dtype else full.dtype
