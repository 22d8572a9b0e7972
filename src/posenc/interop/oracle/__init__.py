"""What a model of transformers does with positions, measured on the model itself."""

from dataclasses import replace
from typing import Any

from torch import nn

from posenc.interop.oracle.building import built, classes_of, shrunk, tiny
from posenc.interop.oracle.masks import Reach
from posenc.interop.oracle.rotation import Rotation
from posenc.interop.oracle.watching import Layer, inputs_of, register, watched


def layers_of(model: nn.Module, axes: int | None = None, longest: int | None = None) -> list[Layer]:
    """What each layer of a small model does, seen in one pass over a few tokens.

    Positions have three axes where its code has ``mrope_section``, unless these are given.

    Example:
        >>> from transformers import CohereConfig
        >>> layer, *_ = layers_of(asked(CohereConfig()))
        >>> layer.rotation.pairing, layer.rotation.width, layer.scale, layer.reach
        ('interleaved', 128, 0.08838834764831845, Reach(before=None, after=0, chunk=None))
    """
    if axes is None:
        axes = 3 if any(hasattr(each, "mrope_section") for each in model.modules()) else 0
    record = watched(model, axes, longest)
    found: dict[int, Layer] = {}
    for layer in record.attended:
        if layer.index is not None:
            found.setdefault(layer.index, layer)
    measured: dict[Any, Rotation | None] = {}
    for call in record.rotated:
        layer = Layer(call.path)
        if layer.index is None or found.setdefault(layer.index, layer).rotation is not None:
            continue
        if call.key not in measured:
            measured[call.key] = call.rotation(record.positions)
        found[layer.index] = replace(found[layer.index], rotation=measured[call.key])
    return [found[index] for index in sorted(found)]


def asked(config: Any, depth: int | None = None) -> nn.Module:
    """A small model of a configuration whose attention notes its scale and its mask."""
    small = tiny(config, depth)
    try:
        return built(small, register())
    except ValueError:  # its class takes no other attention than its own
        return built(small)


__all__ = [
    "Layer", "Reach", "Rotation", "asked", "built", "classes_of", "inputs_of", "layers_of",
    "register", "shrunk", "watched",
]  # fmt: skip
