"""Which encoding a place has: the one that its configuration means, if that is measured there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.oracle import modules
from posenc.interop.oracle.modules import TABLE, Place
from posenc.interop.patching.angles import ALL
from posenc.interop.rope_models import checked
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
    dtype: torch.dtype | None  # of the angles; None: that of the hidden state
    measurements: tuple[Measurement, ...]

    @property
    def form(self) -> str:
        """The arrangement of the angles."""
        return self.measurements[0].form


def admitted(place: Place, length: int | None) -> Admitted:
    """What stands in a place, measured."""
    config, layers = _meant(place, length)
    try:
        module = modules.sound(place.module, place.config)
    except ValueError as error:
        raise Unlike(f"{place.path}: {error}") from None
    if place.takes_layer_type and set(layers) != {None}:
        wanted = {str(kind): [layer] for kind, layer in layers.items()}
    else:  # it may stand for any of them; some have a base of their own, layer by layer
        several = [*layers.values(), *filter(None, read_layers_of(config, length))]
        wanted = {ALL: list({repr(each.encoding): each for each in several}.values())}
    found = {kind: _measured(place, module, kind, each, length) for kind, each in wanted.items()}
    means = {kind: layer for kind, (layer, _) in found.items()}
    dtype = None if place.keeps_rows else _dtype(module, means)
    return Admitted(place, config, means, dtype, tuple(seen for _, seen in found.values()))


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


def _measured(
    place: Place, module: nn.Module, kind: str, candidates: list[RotaryLayer], length: int | None
) -> tuple[RotaryLayer, Measurement]:
    """The first of the candidates that is found in a place."""
    told, layer_type = [], None if kind == ALL else kind
    for layer in candidates:
        positions = modules.positions_for(layer.encoding, longest_of(layer, length))
        try:
            if place.keeps_rows:
                table: Any = module._buffers[TABLE]
                positions = positions[:, positions[0] < len(table)]
                given = table[positions]
            else:
                given = modules.angles_of(module, positions, layer_type)
            form, difference = modules.compared(given, layer.encoding, positions)
        except Exception as error:  # whatever the code of a model raises
            told.append(str(error))
            continue
        seen = tuple(positions.reshape(-1, positions.shape[-1])[0].tolist())
        return layer, Measurement(place.path, layer_type, seen, difference, form)
    layers = f", of layers of type {layer_type}," if layer_type else ""
    raise Unlike(
        f"{place.path} ({type(place.module).__name__}){layers} is not what its configuration "
        f"means: {'; '.join(told)}."
    )


def longest_of(layer: RotaryLayer, length: int | None) -> int | None:
    """A bound of the positions at which a model and its configuration can be compared."""
    return (length or layer.rope.trained_length) if layer.rope.kind in GROWING else None


def _dtype(module: nn.Module, layers: Mapping[str, RotaryLayer]) -> torch.dtype | None:
    """The dtype in which a module gives angles whatever it is asked in; None: in that."""
    kind, layer = next(iter(layers.items()))
    positions, kind = modules.positions_for(layer.encoding, 8), None if kind == ALL else kind
    half, full = (
        modules.parts(modules.angles_of(module, positions, kind, dtype))[0].dtype
        for dtype in (torch.bfloat16, torch.float32)
    )
    return None if half != full else full
