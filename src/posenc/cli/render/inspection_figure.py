"""The figure of ``posenc inspect``: wavelengths of rotary encodings, or the profile of a bias."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from posenc.cli.errors import UserError
from posenc.encodings.base import RelativeBias
from posenc.encodings.expression import encoding_from
from posenc.inspection.model import LayerNumbers, SetupNumbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FARTHEST = 512
"""Distances of a bias that are drawn, on either side."""


def drawn(paths: Sequence[Path], models: Sequence[SetupNumbers]) -> "Axes":
    """Wavelengths of every rotary encoding of one or two models; without any, the first bias.

    Raises:
        UserError: There is neither.
    """
    from posenc.plots.wavelengths import wavelengths

    found: dict[str, Sequence[float]] = {}
    trained = target = None
    several = len(models) > 1
    for path, model in zip(paths, models, strict=True):
        for name, layer in _kinds(model):
            if layer.rotary is None:
                continue
            called = f"{path.parent.name or path}: {name}" if several else name
            found[called] = _wavelengths(layer)
            trained = layer.rotary.trained_length or trained
            target = layer.rotary.target_length or target
    if found:
        return wavelengths(found, trained_length=trained, target_length=target)
    return _bias(models[0])


def _kinds(model: SetupNumbers) -> list[tuple[str, LayerNumbers]]:
    """Each kind of layer once, by its part and type."""
    found: dict[str, LayerNumbers] = {}
    for part in model.parts:
        for layer in part.layers:
            name = part.name if layer.layer_type is None else f"{part.name}, {layer.layer_type}"
            found.setdefault(name, layer)
    return list(found.items())


def _wavelengths(layer: LayerNumbers) -> Sequence[float]:
    encoding = encoding_from(layer.queries_keys[0])
    rotary = getattr(encoding, "rotary", encoding)
    return rotary.frequencies.wavelengths()  # type: ignore[union-attr]


def _bias(model: SetupNumbers) -> "Axes":
    from posenc.plots.bias import bias

    for _, layer in _kinds(model):
        for expression in layer.scores:
            encoding = encoding_from(expression)
            if isinstance(encoding, RelativeBias):
                distance = torch.arange(-FARTHEST, FARTHEST + 1)
                with torch.no_grad():
                    profile = encoding.profile(distance)
                learned = any(True for _ in encoding.parameters())
                return bias(profile, distance, random=learned)
    raise UserError(
        f"{model.model_type} has neither wavelengths nor a bias of distance; leave --figure out"
    )
