"""The figure of ``posenc inspect``: wavelengths of rotary encodings, or the profile of a bias."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from posenc.cli.encodings import learns
from posenc.cli.errors import UserError
from posenc.cli.files import config_in
from posenc.cli.render.inspection import layers
from posenc.encodings.bias import RelativeBias
from posenc.encodings.expression import encoding_from
from posenc.inspection.model import LayerNumbers, SetupNumbers
from posenc.inspection.rotary import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FARTHEST = 512
"""Distances of a bias that are drawn, on either side."""


def drawn(paths: Sequence[Path], models: Sequence[SetupNumbers]) -> "Axes":
    """Wavelengths of every rotary encoding of one or two models; without any, the first bias."""
    from posenc.plots.wavelengths import wavelengths

    kinds: dict[str, LayerNumbers] = {}
    for letter, path, model in zip("AB", paths, models, strict=False):
        file = config_in(path)
        before = f"{letter} {file.parent.name}/{file.name}: " if len(models) > 1 else ""
        for part in model.parts:
            for places, layer in grouped(part.layers):
                kinds[f"{before}{part.name}, {layer.layer_type or layers(places)}"] = layer
    lengths = {(r.trained_length, r.target_length) for k in kinds.values() if (r := k.rotary)}
    if not lengths:
        return _bias(kinds, models)
    found = {}
    for name, layer in kinds.items():
        if layer.rotary is not None:
            encoding = encoding_from(layer.queries_keys[0])
            rotary = getattr(encoding, "rotary", encoding)
            trained = layer.rotary.trained_length
            told = f" (trained to {trained:,})" if trained and len(lengths) > 1 else ""
            found[name + told] = rotary.frequencies.wavelengths()  # type: ignore[union-attr]
    trained, target = lengths.pop() if len(lengths) == 1 else (None, None)
    return wavelengths(found, trained_length=trained, target_length=target)


def _bias(kinds: dict[str, LayerNumbers], models: Sequence[SetupNumbers]) -> "Axes":
    from posenc.plots.bias import bias

    for name, layer in kinds.items():
        for expression in layer.scores:
            with torch.random.fork_rng(devices=()), torch.no_grad():
                torch.manual_seed(0)  # so that a figure of what is not trained is the same again
                encoding = encoding_from(expression)
                if isinstance(encoding, RelativeBias):
                    distance = torch.arange(-FARTHEST, FARTHEST + 1)
                    profile = encoding.profile(distance)
                    return bias(profile, distance, random=learns(encoding), title=name)
    told = " and ".join(model.model_type for model in models)
    raise UserError(f"{told} has neither wavelengths nor a bias of distance; leave --figure out")
