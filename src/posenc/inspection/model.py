"""What a whole model does with positions, in numbers: part by part, layer by layer."""

from dataclasses import dataclass
from typing import Any

import torch

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.inspection.rotary import RotaryNumbers, numbers_of, promised
from posenc.interop.configurations import Config
from posenc.interop.fields import check_length
from posenc.interop.rotary_config import RotaryLayer
from posenc.interop.setup import Certainty, LayerSetup
from posenc.interop.setup_reading import positional_setup

PLACES = "tokens", "queries_keys", "scores"


@dataclass(frozen=True)
class LayerNumbers:
    """What one layer does with positions."""

    layer_type: str | None  #: as the configuration names it; None where all layers are alike
    tokens: tuple[str, ...]  #: expressions that build the encodings of tokens
    queries_keys: tuple[str, ...]  #: likewise, of queries and keys
    scores: tuple[str, ...]  #: likewise, of scores
    is_read: bool  #: whether these expressions say all that the layer does
    softmax_scale: float | None  #: of scores in attention; None where nothing says
    window: int | None  #: a query sees the keys at distances below this; None for all of them
    chunk: int | None  #: a query sees keys of its own chunk of so many positions; None without
    rotary: RotaryNumbers | None  #: None without a rotary encoding along one sequence

    @property
    def expression(self) -> str | None:
        """The ``Positional`` that builds it; None where expressions do not say all.

        Example:
            >>> inspect_model({"model_type": "gpt2"})["text"].layers[0].expression
            'Positional(tokens=Learned(768, max_len=1024))'
        """
        if not self.is_read:
            return None
        held = {place: getattr(self, place) for place in PLACES}
        told = (
            f"{place}=({', '.join(each)})" if len(each) > 1 else f"{place}={each[0]}"
            for place, each in held.items() if each
        )  # fmt: skip
        return f"Positional({', '.join(told)})"


@dataclass(frozen=True)
class PartNumbers:
    """One part of a model."""

    name: str  #: what it is called
    model_type: str  #: of the part
    layers: tuple[LayerNumbers, ...]  #: one a layer
    certainty: Certainty  #: how sure the reading is; see ``posenc.interop.setup.Part``
    notes: tuple[str, ...]  #: anything else, in words


@dataclass(frozen=True)
class SetupNumbers:
    """A whole model."""

    model_type: str  #: as the configuration names it
    parts: tuple[PartNumbers, ...]  #: its parts, that of text first

    def __getitem__(self, name: str) -> PartNumbers:
        return next(part for part in self.parts if part.name == name)


def inspect_model(
    config: Config, *, length: int | None = None, dtype: torch.dtype = torch.bfloat16
) -> SetupNumbers:
    """Numbers about every part and layer of the model that a configuration describes.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        length: Target length, in tokens; if not given, the longest that each part promises.
        dtype: In which other implementations hold positions and frequencies.

    Example:
        >>> numbers = inspect_model({"model_type": "t5"})
        >>> [part.name for part in numbers.parts], numbers["encoder"].layers[0].softmax_scale
        (['encoder', 'decoder', 'cross-attention'], 1.0)
    """
    check_length(length)
    plain, parts = positional_setup(config), []
    for index, part in enumerate(plain):
        target = length or promised(layer.rope for layer in part.layers if layer.rope)
        # Once more, since some frequencies depend on the length.
        part = positional_setup(config, length=target).parts[index]
        rotations = [_rotation(layer, part.certainty != "assumed") for layer in part.layers]
        layers = tuple(map(_layer, part.layers, numbers_of(rotations, target, dtype)))
        found = PartNumbers(part.name, part.model_type, layers, part.certainty, part.notes)
        parts.append(found)
    return SetupNumbers(plain.model_type, tuple(parts))


def _rotation(layer: LayerSetup, is_known: bool) -> RotaryLayer | None:
    """The rotary encoding along one sequence, if a layer has it."""
    for encoding in layer.encodings if layer.rope else ():
        if isinstance(encoding, Rotary | MultimodalRotary):
            scale: Any = layer.softmax_scale
            return RotaryLayer(layer.layer_type, layer.rope, encoding, scale, is_known)  # type: ignore[arg-type]
    return None


def _layer(layer: LayerSetup, rotary: RotaryNumbers | None) -> LayerNumbers:
    held = layer.positional or Positional()
    return LayerNumbers(
        layer.layer_type,
        *(tuple(map(_expression, getattr(held, place))) for place in PLACES),
        is_read=layer.positional is not None,
        softmax_scale=layer.softmax_scale,
        window=layer.window,
        chunk=layer.chunk,
        rotary=rotary,
    )


def _expression(encoding: Any) -> str:
    """What builds an encoding: its own words, on one line."""
    if isinstance(encoding, MultimodalRotary):
        held = f"{encoding.rotary!r}, {encoding.sections}, {encoding.arrangement!r}"
        return f"MultimodalRotary({held})"
    return " ".join(f"{type(encoding).__name__}({encoding.extra_repr()})".split())
