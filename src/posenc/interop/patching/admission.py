"""Which encoding a place has: the one that its configuration means, if that is measured there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.oracle.encodings import Encoding, bare, points_of
from posenc.interop.patching.modules import ALL, FORMS, TABLE, Angles, Place, rows_of, sound, takes
from posenc.interop.rope_models import checked
from posenc.interop.rotary_config import RotaryLayer, layers_by_type, read_layers_of

POSITIONS = (0, 1, 2, 3, 7, 30, 129, 511, 4_097, 65_537, 1_000_003)
"""Near, where every pair tells its frequency; and far, where slow ones do."""

FREQUENCY, VALUE = 4e-6, 2e-6
"""How far float32 frequencies of a model may be off, as a share; and its cosines and sines."""

GROWING = ("dynamic", "longrope")
"""Rope types that a model switches by the longest position it has seen."""


class Unlike(ValueError):
    """What a place gives is not what its configuration means, or that cannot be read."""


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
    module = sound(place.module, place.config)
    if "layer_type" in takes(place.module) and set(layers) != {None}:
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
        raise Unlike(f"{place.path} cannot be read: {error}") from None
    used = {None, *(layer_types(config) or layers)}
    layers = {kind: layer for kind, layer in layers.items() if kind in used}
    if not layers:
        raise Unlike(f"{place.path}: its configuration has no layers that rotate")
    return config, layers


def measured(
    place: Place, module: nn.Module, kind: str, candidates: list[RotaryLayer], length: int | None
) -> tuple[RotaryLayer, Measurement]:
    """The first of the candidates that a module gives the angles of."""
    told, layer_type = [], None if kind == ALL else kind
    for layer in candidates:
        longest: Any = rows_of(module)
        if layer.rope.kind in GROWING:  # beyond it, model and configuration differ
            longest = length or layer.rope.trained_length
        positions = _positions_for(layer.encoding, longest)
        try:
            given = _angles_of(module, positions, layer_type)
            form, difference = _compared(given, layer.encoding, positions)
        except Exception as error:  # whatever the code of a model raises
            told.append(str(error))
            continue
        seen = tuple(positions.reshape(-1, positions.shape[-1])[0].tolist())
        return layer, Measurement(place.path, layer_type, seen, difference, form)
    where = f"{place.path} ({type(place.module).__name__}, {kind} layers)"
    raise Unlike(f"{where} is not what its configuration means: {'; '.join(told)}.")


def _dtype(module: nn.Module, layers: Mapping[str, RotaryLayer]) -> torch.dtype | None:
    """The dtype in which a module gives angles whatever it is asked in; None: in that."""
    kind, layer = next(iter(layers.items()))
    positions = _positions_for(layer.encoding, 8)
    given = _angles_of(module, positions, None if kind == ALL else kind, torch.bfloat16)
    dtype = _real(given).dtype
    return None if dtype == torch.bfloat16 else dtype


def _positions_for(encoding: Encoding, longest: int | None) -> Tensor:
    """Where to measure, ``[1, seq]`` or ``[axes, 1, seq]``: up to ``longest`` − 1."""
    near = POSITIONS if longest is None else [p for p in POSITIONS if p < longest - 1]
    row = torch.tensor([*near, *([] if longest is None else [longest - 1])])
    if not isinstance(encoding, MultimodalRotary):
        return row[None]
    return torch.stack([row.roll(2 * axis) for axis in range(len(encoding.sections))])[:, None]


def _angles_of(
    module: nn.Module, positions: Tensor, layer_type: str | None, dtype: torch.dtype = torch.float32
) -> Angles:
    """What a module gives for a hidden state of a dtype, or its table has."""
    if (table := module._buffers.get(TABLE)) is not None:
        return table[positions]
    x = torch.zeros(1, positions.shape[-1], 1, dtype=dtype)
    named = {} if layer_type is None else {"layer_type": layer_type}
    with torch.no_grad():
        return module(x, positions, **named)


def _real(angles: Angles) -> Tensor:
    """One tensor of real numbers: ``[2, …]`` where cosines and sines are apart, else ``[1, …]``."""
    if isinstance(angles, Tensor):
        return torch.stack((angles.real, angles.imag)) if angles.is_complex() else angles[None]
    return torch.stack([*angles])


def _compared(given: Angles, encoding: Encoding, positions: Tensor) -> tuple[str, float]:
    """The form in which angles are those of an encoding, and how far off; or a ValueError."""
    table = encoding.table(points_of(encoding, positions), dtype=torch.float64)  # type: ignore[arg-type]
    allowed = _allowance(encoding, positions)
    theirs, tried = _real(given).detach().cpu().double(), []
    for name, form in FORMS.items():
        arranged = form(*table.unbind(-2))
        if _shape(arranged) == _shape(given):
            ours = _real(arranged)
            apart = (ours - theirs).abs()
            tried.append((name, ours, apart, apart - _real(form(allowed, allowed))))
    if not tried:
        raise ValueError(f"it gives {_shape(given)[-1]}, which is no form of angles")
    name, ours, apart, excess = min(tried, key=lambda each: float(each[-1].max()))
    if excess.max() <= 0:
        return name, float(apart.max())
    place = tuple(map(int, torch.unravel_index(excess.argmax(), excess.shape)))
    where = positions[..., place[-2]].flatten().tolist()
    raise ValueError(
        f"channel {place[-1]} of its angles at {where} is {theirs[place]:.6g}, and by its "
        f"configuration {ours[place]:.6g}"
    )


def _allowance(encoding: Encoding, positions: Tensor) -> Tensor:
    """How far float32 may be off, for each position and pair."""
    schedule = bare(encoding).frequencies
    speed = torch.tensor([abs(float(each)) for each in schedule.radians()], dtype=torch.float64)
    reach = positions.double() if positions.ndim == 2 else positions.double().amax(0)
    return schedule.attention_factor * (FREQUENCY * reach[..., None] * speed + VALUE)


def _shape(angles: Angles) -> tuple[bool, bool, tuple[int, ...]]:
    """Whether cosines and sines are one tensor, and a complex one, and its shape."""
    one = angles if isinstance(angles, Tensor) else angles[0]
    return one is angles, one.is_complex(), tuple(one.shape)
