"""From the configuration of a Hugging Face model to its rotary encoding and its temperatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.multimodal import Arrangement, MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary, Rotated
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.scores.temperature import LogTemperature
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.schedule import Rescaled
from posenc.interop.configurations import Config, read
from posenc.interop.fields import Configuration, check_length
from posenc.interop.layer_types import layer_types, unrotated
from posenc.interop.rope_layers import dictionaries, latent_width, rope_of, width_of_head
from posenc.interop.rope_models import check_unheeded, checked, pairing_of_code, softmax_scale
from posenc.numerics.pairing import checked_pairing


@dataclass(frozen=True)
class RotaryLayer:
    """The rotary encoding of some layers, and what the configuration said of it."""

    layer_type: str | None  # of these layers; None where all layers are alike
    rope: Rope  # the rope dictionary as it was read
    encoding: Rotary | MultimodalRotary  # the encoding
    softmax_scale: float  # what attention multiplies its scores with
    pairing_is_known: bool  # that it is of the model's code, and not just the usual

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
    known = checked(read(config, warns=True))
    check_unheeded(known, length)
    layers = [*layers_by_type(known, length).values()]
    if known.get(known.facts.get("one_by_one", "")) is not None:
        layers = [layer for layer in read_layers_of(known, length) if layer]
    return _one_of([(layer.layer_type, layer.encoding) for layer in layers], layer_type)


def _one_of(found: Sequence[tuple[Any, Any]], layer_type: str | None) -> Any:
    """What layers of a type have, or all where they are alike."""
    kinds = ", ".join(map(repr, dict(found)))
    chosen = [each for kind, each in found if layer_type in (None, kind)]
    if not chosen:
        raise ValueError(f"There are no rotary layers of type {layer_type!r}, only of {kinds}.")
    if len({*map(repr, chosen)}) > 1:
        raise ValueError(f"The layers differ; say which with layer_type, one of {kinds}.")
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
    check_length(length)
    known = checked(read(config, warns=True))
    check_unheeded(known, length)
    return tuple(layer and layer.encoding for layer in read_layers_of(known, length))


def read_layers_of(
    config: Configuration, length: int | None = None
) -> tuple[RotaryLayer | None, ...]:
    """What ``rotaries_from_config`` gives, each with the dictionary that it was read from."""
    known = checked(config)
    count, types, told = known.whole("layers"), layer_types(known), dictionaries(known)
    if types is not None and len(types) != count:
        raise ValueError(f"layer_types names {len(types)} layers, and there are {count}.")
    layers: list[RotaryLayer | None] = []
    made: dict[Any, RotaryLayer] = {}
    absent = unrotated(known, types, count)
    for index, kind in enumerate(types or [None] * count):
        kind = kind if kind in told else None
        if not absent[index] and kind not in told:
            raise ValueError("rope_parameters has no dictionary for the type of a layer.")
        dictionary = None if absent[index] else _of_layer(known, told[kind], index)
        key = (kind, repr(dictionary))
        if dictionary is not None and key not in made:
            made[key] = layer_of(known, kind, rope_of(known, kind, dictionary), length)
        layers.append(made.get(key))
    return tuple(layers)


def _of_layer(config: Configuration, dictionary: Any, index: int) -> Any:
    """The rope dictionary of one layer: with its own base, or without scaling where not listed."""
    given = config.listed(field := config.facts.get("one_by_one", ""))
    if given is None or dictionary is None:
        return dictionary
    if field == "layer_rope_theta":
        return {**dictionary, "rope_theta": given[index]}
    return dictionary if index in given else {"rope_theta": dictionary.get("rope_theta")}


def layers_by_type(config: Configuration, length: int | None = None) -> dict[Any, RotaryLayer]:
    """The layers that rotate, by their type; one entry under None where all are alike."""
    return {
        kind: layer_of(config, kind, rope_of(config, kind, dictionary), length)
        for kind, dictionary in dictionaries(config).items()
        if dictionary is not None
    }


@dataclass(frozen=True)
class Backwards(Rescaled):
    """−ω_i: every pair turns the other way, as in nanochat."""

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(-w for w in self.of.radians())


def layer_of(
    config: Configuration, layer_type: str | None, rope: Rope, length: int | None
) -> RotaryLayer:
    """The layers of one type, of whose rope dictionary this was read."""
    schedule, width = rope.rope_type.read(rope, length), width_of_head(config, layer_type)
    if config.facts.get("backwards"):
        schedule = Backwards(schedule)
    # DeepSeek's heads are what does not turn, then what does.
    place: Rotated = "suffix" if latent_width(config) else "prefix"
    pairing = checked_pairing(config.get("posenc_pairing") or pairing_of_code(config))
    rotary = Rotary(schedule, head_dim=width, pairing=pairing, rotated=place)
    return RotaryLayer(
        layer_type,
        rope,
        _multimodal(config, rope, rotary),
        softmax_scale(config, width, schedule.softmax_factor),
        config.get("rope_interleave") is not None or "pairing" in config.facts,
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


# Temperatures of queries --------------------------------------------------------------------------

Temperature = QueryTemperature | LogTemperature


def temperatures_from_config(config: Config) -> tuple[Temperature | None, ...]:
    """The query temperature of each layer, and None for layers that have none.

    Llama 4 (``attn_temperature_tuning``) and Beam have one in their layers without rotary
    positions, Ministral 3 and Mistral 4 (``llama_4_scaling_beta``) in all layers, Inkling
    (``log_scaling_n_floor``) in those that see the whole text, Inkling 2 in all. Layers of other
    models have none. A ``LogTemperature`` is an encoding of scores, since Inkling's changes
    relative logits, too; the others act on queries.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.

    Example:
        >>> config = {"model_type": "llama4_text", "head_dim": 16, "num_hidden_layers": 4}
        >>> temperatures_from_config(config)
        (None, None, None, QueryTemperature(16))
    """
    return temperatures_of(read(config, warns=True))


def temperatures_of(config: Configuration) -> tuple[Temperature | None, ...]:
    """The same, of a configuration that is read already.

    ``temperature`` of the facts has a form, and the fields of its scale and its period.
    """
    types = layer_types(config) or [None] * config.whole("layers")
    said = config.facts.get("temperature")
    if said is None or config.get("attn_temperature_tuning") is False:
        return (None,) * len(types)
    rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
    given = [rope.get(name, config.get(name)) for name in said["fields"]]
    pairs = zip(given, said["usual"], strict=True)
    scale, period = (usual if each is None else each for each, usual in pairs)
    if said["form"] == "log" and period is None:
        return (None,) * len(types)
    if None in (scale, period):
        raise ValueError(f"{' or '.join(said['fields'])} is not given.")
    if said["form"] == "log":
        wide = LogTemperature(config.whole("heads"), period, scale)
        narrow = LogTemperature(config.whole("swa_num_attention_heads"), period, scale)
        local = narrow if said["local"] else None
        return tuple(local if kind == "hybrid_sliding" else wide for kind in types)
    made = QueryTemperature(width_of_head(config), scale, period, form=said["form"])
    if said["form"] == "mistral":
        return (made,) * len(types)
    return tuple(None if layer else made for layer in read_layers_of(config))
