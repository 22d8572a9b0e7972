"""Which encoding a place has: the one that its configuration means, if that is measured there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.patching import modules
from posenc.interop.patching.modules import Place
from posenc.interop.rope_models import checked
from posenc.interop.rotary_config import RotaryLayer, layers_by_type, read_layers_of

ALL = "all"
"""The name of the encoding of all layers, where they are alike."""

GROWING = ("dynamic", "longrope")
"""Rope types that a model switches by the longest position it has seen."""


class Unread(TypeError):
    """A configuration does not say what a place gives."""


class Unlike(ValueError):
    """What a place gives is not what its configuration means."""


@dataclass(frozen=True)
class Measurement:
    """What was measured in one place, for layers of one type."""

    path: str  #: of the place in the model
    layer_type: str | None  #: of the layers; None where all are alike
    positions: tuple[int, ...]  #: where it was measured
    difference: float  #: the largest in a cosine or sine, with the float32 error of the model
    form: str  #: the name of the arrangement


@dataclass(frozen=True)
class Admitted:
    """What was found in one place."""

    place: Place
    config: Configuration
    layers: Mapping[str, RotaryLayer]  # by type, or under "all"
    dtype: torch.dtype | None  # of the angles; None: that of the hidden state
    measurements: tuple[Measurement, ...]


def admitted(place: Place, length: int | None) -> Admitted:
    """What stands in a place, measured."""
    config, layers = _meant(place, length)
    module = modules.sound(place.module, place.config)
    if place.takes_layer_type and set(layers) != {None}:
        wanted = {str(kind): [layer] for kind, layer in layers.items()}
    else:  # it may stand for any of them; some have a base of their own, layer by layer
        several = [*layers.values(), *filter(None, read_layers_of(config, length))]
        wanted = {ALL: list({repr(each.encoding): each for each in several}.values())}
    found = {kind: measured(place, module, kind, each, length) for kind, each in wanted.items()}
    means = {kind: layer for kind, (layer, _) in found.items()}
    dtype = None if place.keeps_rows else _dtype(module, means)
    return Admitted(place, config, means, dtype, tuple(seen for _, seen in found.values()))


def _meant(place: Place, length: int | None) -> tuple[Configuration, dict[Any, RotaryLayer]]:
    """The configuration of a place, read, and what it means for layers of each type."""
    try:
        config = checked(read(place.config))
        layers = layers_by_type(config, length)
    except (ValueError, TypeError) as error:
        raise Unread(f"{place.path} cannot be read: {error}") from None
    used = {None, *(layer_types(config) or layers)}
    layers = {kind: layer for kind, layer in layers.items() if kind in used}
    if not layers:
        raise Unread(f"{place.path}: its configuration has no layers that rotate")
    return config, layers


def measured(
    place: Place, module: nn.Module, kind: str, candidates: list[RotaryLayer], length: int | None
) -> tuple[RotaryLayer, Measurement]:
    """The first of the candidates that a module gives the angles of."""
    told, layer_type = [], None if kind == ALL else kind
    for layer in candidates:
        longest: Any = modules.rows_of(module)
        if layer.rope.kind in GROWING:  # beyond it, model and configuration differ
            longest = length or layer.rope.trained_length
        positions = modules.positions_for(layer.encoding, longest)
        try:
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


def _dtype(module: nn.Module, layers: Mapping[str, RotaryLayer]) -> torch.dtype | None:
    """The dtype in which a module gives angles whatever it is asked in; None: in that."""
    kind, layer = next(iter(layers.items()))
    positions = modules.positions_for(layer.encoding, 8)
    given = modules.angles_of(module, positions, None if kind == ALL else kind, torch.bfloat16)
    dtype = modules.real(given).dtype
    return None if dtype == torch.bfloat16 else dtype
