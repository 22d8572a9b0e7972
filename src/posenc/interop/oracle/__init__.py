"""What a model of transformers does with positions, measured on the model itself."""

from dataclasses import replace
from typing import Any

from torch import nn

from posenc.interop.oracle.building import built, classes_of, shrunk
from posenc.interop.oracle.masks import Reach
from posenc.interop.oracle.rotation import Rotation
from posenc.interop.oracle.watching import Layer, inputs_of, register, watched


def layers_of(model: nn.Module) -> list[Layer]:
    """What each layer of a small model does, seen in one pass over a few tokens.

    Positions have three axes where its code has ``mrope_section``.

    Example:
        >>> from transformers import CohereConfig
        >>> layer, *_ = layers_of(asked(CohereConfig()))
        >>> layer.rotation.pairing, layer.rotation.width, layer.scale, layer.reach
        ('interleaved', 128, 0.08838834764831845, Reach(before=None, after=0, chunk=None))
    """
    record = watched(model, 3 * any(hasattr(each, "mrope_section") for each in model.modules()))
    found = {layer.index: layer for layer in reversed(record.attended)}  # the first of each
    for call in record.rotated:
        layer = found.setdefault(Layer(call.path).index, Layer(call.path))
        if layer.index is not None and layer.rotation is None:
            found[layer.index] = replace(layer, rotation=call.rotation(record.positions))
    return [found[index] for index in sorted(each for each in found if each is not None)]


def asked(config: Any) -> nn.Module:
    """A small model of a configuration whose attention says its scale and its mask."""
    small = type(config).from_dict({**config.to_dict(), **shrunk(config)})
    try:
        return built(small, register())
    except ValueError:  # its class takes no other attention than its own
        return built(small)


__all__ = [
    "Layer", "Reach", "Rotation", "asked", "built", "classes_of", "inputs_of", "layers_of",
    "register", "shrunk", "watched",
]  # fmt: skip
