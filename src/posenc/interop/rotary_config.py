"""From the configuration of a Hugging Face model to its rotary encoding, exact at any position."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.multimodal import Arrangement, MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary, Rotated
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.configurations import Config, read, warn_of_strays
from posenc.interop.fields import Configuration, check_length
from posenc.interop.layer_types import layer_types, unrotated
from posenc.interop.rope_layers import (
    check_unheeded,
    dictionaries,
    latent_width,
    rope_of,
    width_of_head,
)
from posenc.interop.rope_models import checked, pairing_is_known, pairing_of, softmax_scale
from posenc.interop.rope_types import Backwards


@dataclass(frozen=True)
class RotaryLayer:
    """The rotary encoding of some layers, and what the configuration said of it."""

    layer_type: str | None  # of these layers; None where all layers are alike
    rope: Rope  # the rope dictionary as it was read
    encoding: Rotary | MultimodalRotary  # the encoding
    softmax_scale: float  # what attention multiplies its scores with
    # whether the pairing is that of the model's code, and not just the usual
    pairing_is_known: bool

    @property
    def rotary(self) -> Rotary:
        """The encoding, with the axes of a multimodal one left aside."""
        held = self.encoding
        return held.rotary if isinstance(held, MultimodalRotary) else held


def rotary_from_config(
    config: Config, *, layer_type: str | None = None, length: int | None = None
) -> QueryKeyEncoding:
    """The rotary encoding that a Hugging Face configuration means.

    Reads the form of version 4 (``rope_theta``, ``rope_scaling``) and of version 5
    (``rope_parameters``), for all layers or nested by layer type. What a file leaves out is taken
    from what the model's class has by default.

    A ``model_type`` that is not known is read by the usual fields, and taken to pair channels i and
    i + width/2. Temperatures of queries are read by ``temperatures_from_config``.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        layer_type: Which layers, as ``"full_attention"``, where they differ. Layers without a
            rotary encoding do not count.
        length: Of the sequences, in tokens, for ``dynamic`` and ``longrope``. If not given, the
            trained length, with which transformers starts: no stretch, and the short factors.

    Raises:
        ValueError: There is no rotary encoding, a key or type is unknown, a value is missing, or
            the layers differ and ``layer_type`` is not given.
        OSError: The file cannot be read.

    Example:
        >>> rotary_from_config({"model_type": "gptj", "n_embd": 64, "n_head": 4, "rotary_dim": 8})
        Rotary(Geometric(dim=8, base=10000.0), head_dim=16, pairing='interleaved')
    """
    check_length(length)
    warn_of_strays(config)
    known = checked(read(config))
    check_unheeded(known, length)
    found: list[tuple[Any, Any]] = [*layers_by_type(known, length).items()]
    if _of_each(known) is not None:
        layers = read_layers_of(known, length)
        found = [*zip(layer_types(known) or [None] * len(layers), layers, strict=True)]
    return _one_of([(kind, layer.encoding) for kind, layer in found if layer], layer_type)


def _one_of(found: Sequence[tuple[Any, Any]], layer_type: str | None) -> Any:
    """What layers of a type have, or all where they are alike."""
    kinds = ", ".join(map(repr, dict(found)))
    chosen = [each for kind, each in found if layer_type in (None, kind)]
    if not chosen:
        raise ValueError(f"There are no rotary layers of type {layer_type!r}, only of {kinds}.")
    if len({*map(repr, chosen)}) > 1:
        raise ValueError(
            f"The layers differ. Say which with layer_type, of {kinds}, or call "
            f"rotaries_from_config."
        )
    return chosen[0]


def softmax_scale_from_config(config: Config, *, layer_type: str | None = None) -> float:
    """What attention multiplies the scores of rotated queries and keys with."""
    found = layers_by_type(checked(read(config)))
    kind = layer_type if layer_type in found else None
    return _one_of([(kind, layer.softmax_scale) for kind, layer in found.items()], kind)


def rotaries_from_config(
    config: Config, *, length: int | None = None
) -> tuple[QueryKeyEncoding | None, ...]:
    """The rotary encoding of each layer, and None for layers that have none.

    None stands for NoPE layers (SmolLM3, Llama 4, Cohere 2) and for layers without attention.
    Layers of one type share one encoding.

    Example:
        >>> config = {"model_type": "smollm3", "hidden_size": 64, "num_attention_heads": 4,
        ...           "num_hidden_layers": 4, "rope_theta": 5e6}
        >>> [layer is not None for layer in rotaries_from_config(config)]
        [True, True, True, False]
    """
    warn_of_strays(config)
    check_unheeded(checked(read(config)), length)
    return tuple(layer and layer.encoding for layer in read_layers(config, length=length))


def read_layers(config: Config, *, length: int | None = None) -> tuple[RotaryLayer | None, ...]:
    """What ``rotaries_from_config`` gives, each with the dictionary that it was read from."""
    check_length(length)
    return read_layers_of(read(config), length)


def read_layers_of(
    config: Configuration, length: int | None = None
) -> tuple[RotaryLayer | None, ...]:
    """The same, of a configuration that is read already."""
    known = checked(config)
    count, types = known.whole("layers"), layer_types(known)
    if types is not None and len(types) != count:
        raise ValueError(f"layer_types names {len(types)} layers, and there are {count}.")
    told: dict[Any, RotaryLayer | None] = {
        **dict.fromkeys(dictionaries(known)),
        **layers_by_type(known, length),
    }
    layers: list[RotaryLayer | None] = []
    for kind, none in zip(types or [None] * count, unrotated(known, types, count), strict=True):
        kind = kind if kind in told else None
        if not none and kind not in told:
            raise ValueError(f"rope_parameters has no dictionary for layers of type {kind!r}.")
        layers.append(None if none else told[kind])
    if (given := _of_each(known)) is None:
        return tuple(layers)
    made: dict[tuple[float, str], RotaryLayer] = {}  # those with one dictionary share it
    for index, layer in enumerate(layers):
        if layer is not None:
            rope = _own(known, layer.rope, index, given)
            key = (rope.base, rope.kind)
            layers[index] = made.setdefault(key, layer_of(known, None, rope, length))
    return tuple(layers)


def _of_each(config: Configuration) -> Sequence[Any] | None:
    """What a file says of the rotation of each layer, whatever its type; None of most."""
    return config.listed(config.facts.get("one_by_one", ""))


def _own(config: Configuration, rope: Rope, index: int, given: Sequence[Any]) -> Rope:
    """The rope dictionary of one layer: with its own base, or without scaling where not listed."""
    if config.facts["one_by_one"] == "layer_rope_theta":
        return replace(rope, base=float(given[index]))
    return rope if index in given else replace(rope, rope_type=ROPE_TYPES["default"], values={})


def layers_by_type(config: Configuration, length: int | None = None) -> dict[Any, RotaryLayer]:
    """The layers that rotate, by their type; one entry under None where all are alike."""
    return {
        kind: layer_of(config, kind, rope_of(config, kind, dictionary), length)
        for kind, dictionary in dictionaries(config).items()
        if dictionary is not None
    }


def layer_of(
    config: Configuration, layer_type: str | None, rope: Rope, length: int | None
) -> RotaryLayer:
    """The layers of one type, of whose rope dictionary this was read."""
    schedule, width = rope.rope_type.read(rope, length), width_of_head(config, layer_type)
    if config.facts.get("backwards"):
        schedule = Backwards(schedule)
    # DeepSeek's heads are what does not turn, then what does.
    place: Rotated = "suffix" if latent_width(config) else "prefix"
    rotary = Rotary(schedule, head_dim=width, pairing=pairing_of(config), rotated=place)
    return RotaryLayer(
        layer_type,
        rope,
        _multimodal(config, rope, rotary),
        softmax_scale(config, width, schedule.softmax_factor),
        pairing_is_known(config),
    )


def _multimodal(config: Configuration, rope: Rope, rotary: Rotary) -> Rotary | MultimodalRotary:
    """``rotary`` with its pairs shared out among axes, where the model does so."""
    arrangement, *usual = config.facts.get("sections", ("contiguous",))
    kind: Arrangement | Sequence[int] = arrangement
    sections = rope.values.get("mrope_section") or usual
    if not sections:
        return rotary
    if arrangement == "alternating":  # ERNIE's height and width, pair by pair, then its time
        height, width, time = sections
        sections, kind = (time, height, width), (1, 2) * height + (0,) * time
    elif arrangement == "interleaved":
        sections = _dealt(sections, len(rotary.sincos))
    elif rope.values.get("mrope_interleaved") or rope.values.get("interleaved"):
        kind = "interleaved"
    return MultimodalRotary(rotary, sections, kind)


def _dealt(sections: Sequence[int], pairs: int) -> Sequence[int]:
    """Sections of all pairs, where models deal out what is given as far as there are pairs."""
    if sum(sections) == pairs:
        return tuple(sections)
    apart = len(sections)
    rest = [len(range(i, min(n * apart, pairs), apart)) for i, n in enumerate(sections)][1:]
    return pairs - sum(rest), *rest
