"""The figure of ``posenc inspect``: wavelengths of rotary encodings, or the profile of a bias."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from posenc.cli.errors import UserError
from posenc.cli.render.inspection_report import layers
from posenc.encodings.bias import RelativeBias
from posenc.encodings.expression import encoding_from
from posenc.inspection.model import LayerNumbers, SetupNumbers
from posenc.inspection.rotary import RotaryNumbers, grouped

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

    kinds = _kinds(paths, models)
    rotary = {name: layer.rotary for name, layer in kinds.items() if layer.rotary is not None}
    if not rotary:
        return _bias(kinds, models)
    lengths = {(each.trained_length, each.target_length) for each in rotary.values()}
    found = {
        name if len(lengths) == 1 else f"{name} ({_told(each)})": _wavelengths(kinds[name])
        for name, each in rotary.items()
    }
    trained, target = lengths.pop() if len(lengths) == 1 else (None, None)
    return wavelengths(found, trained_length=trained, target_length=target)


def _told(rotary: RotaryNumbers) -> str:
    trained, target = rotary.trained_length, rotary.target_length
    said = "trained to an unknown length" if trained is None else f"trained to {trained:,}"
    return said if target in (trained, None) else f"{said}, looked at up to {target:,}"


def _kinds(paths: Sequence[Path], models: Sequence[SetupNumbers]) -> dict[str, LayerNumbers]:
    """Each kind of layer once: by model, part and type, and by its layers where these differ."""
    found: dict[str, LayerNumbers] = {}
    for letter, name, model in zip("AB", _names(paths), models, strict=False):
        before = f"{letter} {name}: " if len(models) > 1 else ""
        for part in model.parts:
            groups = grouped(part.layers)
            types = [layer.layer_type for _, layer in groups]
            for places, layer in groups:
                kind = layer.layer_type
                several = types.count(kind) > 1
                told = [part.name, *([kind] if kind else []), *([layers(places)] * several)]
                found[before + ", ".join(told)] = layer
    return found


def _names(paths: Sequence[Path]) -> list[str]:
    """The folders where these tell the files apart, else the files, else the whole paths."""
    files = [path / "config.json" if path.is_dir() else path for path in paths]
    for names in ([file.parent.name for file in files], [file.name for file in files]):
        if all(names) and len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def _wavelengths(layer: LayerNumbers) -> Sequence[float]:
    encoding = encoding_from(layer.queries_keys[0])
    rotary = getattr(encoding, "rotary", encoding)
    return rotary.frequencies.wavelengths()  # type: ignore[union-attr]


def _bias(kinds: Mapping[str, LayerNumbers], models: Sequence[SetupNumbers]) -> "Axes":
    from posenc.plots.bias import bias

    for name, layer in kinds.items():
        for expression in layer.scores:
            with torch.random.fork_rng(devices=()):
                torch.manual_seed(0)  # so that a figure of what is not trained is the same again
                encoding = encoding_from(expression)
            if isinstance(encoding, RelativeBias):
                distance = torch.arange(-FARTHEST, FARTHEST + 1)
                with torch.no_grad():
                    profile = encoding.profile(distance)
                learned = any(True for _ in encoding.parameters())
                return bias(profile, distance, random=learned, title=name)
    told = " and ".join(model.model_type for model in models)
    raise UserError(f"{told} has neither wavelengths nor a bias of distance; leave --figure out")
