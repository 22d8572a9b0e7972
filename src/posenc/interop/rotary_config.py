"""From the configuration of a Hugging Face model to its rotary encoding, exact at any position."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.multimodal import Arrangement, MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop import rope_models
from posenc.interop.configurations import (
    FILL_IN,
    Configuration,
    check_length,
    read,
    warn_of_strays,
)
from posenc.interop.layer_types import layer_bases, layer_types, unrotated
from posenc.interop.rope_layers import checked, dictionaries, rope_of
from posenc.interop.rope_types import schedule_of
from posenc.interop.rope_widths import latent_width, width_of_head
from posenc.interop.unheeded import check_unheeded


@dataclass(frozen=True)
class RotaryLayer:
    """The rotary encoding of some layers, and what the configuration said of it.

    Attributes:
        layer_type: Of these layers; None where all layers are alike.
        rope: The rope dictionary as it was read.
        encoding: The encoding.
        softmax_scale: What attention multiplies its scores with.
        pairing_is_known: Whether the pairing is that of the model's code, and not just the usual.
    """

    layer_type: str | None
    rope: Rope
    encoding: Rotary | MultimodalRotary
    softmax_scale: float
    pairing_is_known: bool

    @property
    def rotary(self) -> Rotary:
        """The encoding, with the axes of a multimodal one left aside."""
        held = self.encoding
        return held.rotary if isinstance(held, MultimodalRotary) else held


def rotary_from_config(
    config: Any | dict[str, Any] | str | Path,
    *,
    layer_type: str | None = None,
    length: int | None = None,
) -> QueryKeyEncoding:
    """The rotary encoding that a Hugging Face configuration means.

    Reads the form of version 4 (``rope_theta``, ``rope_scaling``) and of version 5
    (``rope_parameters``), for all layers or nested by layer type. A file is read without
    transformers; what it leaves out is taken from what the model's code has by default.

    A ``model_type`` that is not known is taken to pair channels i and i + width/2, as most do.
    Numbers of a rotation in its file that are not read (``rope_ratio``) are refused, and switches
    (``use_dynamic_ntk``) warned of.
    Fields of a language model that stand beside its parts, as in files of LLaVA's authors, are read
    as its own, with a warning where the class in transformers does not look for them. A class that
    hands on some of them (Qwen2-VL) leaves the others out; so does this, with a warning.
    Temperatures of queries (Llama 4, Ministral 3) are no rotation: ``temperatures_from_config``
    reads them.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        layer_type: Which layers, as ``"full_attention"``, where they differ. Layers without a
            rotary encoding do not count.
        length: Of the sequences, in tokens, for ``dynamic`` and ``longrope``. If not given, the
            trained length, with which transformers starts: no stretch, and the short factors.

    Raises:
        ValueError: There is no rotary encoding, a key or type is unknown, a value is missing, the
            layers differ and ``layer_type`` is not given, or ``length`` is no whole number from 1
            on.
        OSError: The file cannot be read.

    Example:
        >>> rotary_from_config({"model_type": "gptj", "n_embd": 64, "n_head": 4, "rotary_dim": 8})
        Rotary(Geometric(dim=8, base=10000.0), head_dim=16, pairing='interleaved')
    """
    check_length(length)
    warn_of_strays(config)
    known = checked(read(config))
    check_unheeded(known, length)
    field = _field_of_layers(known)
    found = layers_by_type(known, length) if field is None else _alike(known, field, length)
    if layer_type is None:
        return _only(found)
    if layer_type in found:
        return found[layer_type].encoding
    raise ValueError(
        f"There are no rotary layers of type {layer_type!r}; this configuration has them of type "
        f"{', '.join(map(repr, found))}. Choose one of these."
    )


def softmax_scale_from_config(
    config: Any | dict[str, Any] | str | Path, *, layer_type: str | None = None
) -> float:
    """What attention multiplies the scores of rotated queries and keys with.

    Args:
        config: As of ``rotary_from_config``.
        layer_type: Which layers, where these differ in it.

    Raises:
        ValueError: As of ``rotary_from_config``.
        OSError: The file cannot be read.

    Example:
        >>> softmax_scale_from_config({"model_type": "granite", "attention_multiplier": 0.0078125,
        ...                            "hidden_size": 256, "num_attention_heads": 4})
        0.0078125
    """
    found = layers_by_type(checked(read(config)))
    scales = {kind: layer.softmax_scale for kind, layer in found.items()}
    if layer_type in scales:
        return scales[layer_type]
    if len(set(scales.values())) != 1:
        told = ", ".join(f"{scale:g} ({kind})" for kind, scale in scales.items())
        raise ValueError(
            f"The layers multiply scores with {told}. Choose one of these with layer_type."
        )
    return next(iter(scales.values()))


def rotaries_from_config(
    config: Any | dict[str, Any] | str | Path, *, length: int | None = None
) -> tuple[QueryKeyEncoding | None, ...]:
    """The rotary encoding of each layer, and None for layers that have none.

    None stands for NoPE layers (SmolLM3, Llama 4, Cohere 2) and for layers without attention.
    Layers of one type share one encoding.

    Args:
        config: As of ``rotary_from_config``.
        length: As of ``rotary_from_config``.

    Raises:
        ValueError: As of ``rotary_from_config``, or the number of layers is not given.
        OSError: The file cannot be read.

    Example:
        >>> config = {"model_type": "smollm3", "hidden_size": 64, "num_attention_heads": 4,
        ...           "num_hidden_layers": 4, "rope_theta": 5e6}
        >>> [layer is not None for layer in rotaries_from_config(config)]
        [True, True, True, False]
    """
    warn_of_strays(config)
    check_unheeded(checked(read(config)), length)
    return tuple(layer and layer.encoding for layer in read_layers(config, length=length))


def read_layers(
    config: Any | dict[str, Any] | str | Path, *, length: int | None = None
) -> tuple[RotaryLayer | None, ...]:
    """What ``rotaries_from_config`` gives, each with the dictionary that it was read from."""
    check_length(length)
    return read_layers_of(read(config), length)


def read_layers_of(
    config: Configuration, length: int | None = None
) -> tuple[RotaryLayer | None, ...]:
    """The same, of a configuration that is read already."""
    known = checked(config)
    found = layers_by_type(known, length)
    count, types = known.whole("layers"), layer_types(known)
    if types is None and known.family in rope_models.TYPES_NEEDED:
        raise ValueError(
            f"This configuration of {known.model_type} leaves layer_types out, for which its "
            f"class has a rule of its own: {FILL_IN}"
        )
    stack = rope_models.STACK_NEEDED.get(known.family)
    if stack and known.get(stack) is None:
        raise ValueError(
            f"This configuration of {known.model_type} leaves {stack} out, and its class then "
            f"multiplies {known.field('layers')} by how often it runs its stacks. Load it with "
            f"transformers.AutoConfig, and pass the object."
        )
    if types is not None and len(types) != count:
        raise ValueError(
            f"layer_types names {len(types)} layers; the configuration has {count}. Correct one."
        )
    without = unrotated(known, types, count)
    each = types or [None] * count
    told = dictionaries(known)
    silent = {kind for kind, none in zip(each, without, strict=True) if not none} - set(told)
    if silent and None not in told:
        raise ValueError(
            f"rope_parameters has dictionaries for {', '.join(map(str, told))}, and none for "
            f"layers {_of_types(silent)}. Give one for each type of layer; null where layers of it "
            f"do not rotate."
        )
    layers = [
        None if none else found.get(kind, found.get(None))
        for kind, none in zip(each, without, strict=True)
    ]
    return tuple(_one_by_one(known, layers, length))


def _of_types(silent: Iterable[str | None]) -> str:
    return " and ".join("of no type" if kind is None else f"of type {kind!r}" for kind in silent)


def _field_of_layers(config: Configuration) -> str | None:
    """The field in which a file speaks of the rotation of each layer, whatever its type."""
    field = rope_models.SCALED_LAYERS.get(config.family)
    if config.family in rope_models.THETA_OF_LAYER:
        field = "layer_rope_theta"
    return field if field and config.get(field) is not None else None


def _one_by_one(
    config: Configuration, layers: list[RotaryLayer | None], length: int | None
) -> list[RotaryLayer | None]:
    """The layers as a field that speaks of each has them; those with one dictionary share it."""
    if (field := _field_of_layers(config)) is None:
        return layers
    bases = layer_bases(config, len(layers)) or [None] * len(layers)
    scaled = range(len(layers)) if field == "layer_rope_theta" else _scaled(config, len(layers))
    made: dict[tuple[float, str], RotaryLayer] = {}
    found: list[RotaryLayer | None] = []
    for index, (layer, base) in enumerate(zip(layers, bases, strict=True)):
        if layer is None:
            found.append(None)
            continue
        rope = layer.rope if base is None else replace(layer.rope, base=float(base))
        if index not in scaled:
            rope = replace(rope, rope_type=ROPE_TYPES["default"], values={})
        key = (rope.base, rope.kind)
        if key not in made:
            made[key] = layer_of(config, None, rope, length)
        found.append(made[key])
    return found


def _scaled(config: Configuration, count: int) -> Sequence[int]:
    """The numbers of the layers that the rope dictionary scales."""
    name = rope_models.SCALED_LAYERS[config.family]
    given = config.get(name)
    if isinstance(given, list | tuple) and all(type(n) is int and 0 <= n < count for n in given):
        return given
    raise ValueError(
        f"{name} is {given!r}; it must be a list of layers, from 0 to {count - 1}. Correct it."
    )


def _alike(config: Configuration, field: str, length: int | None) -> dict[Any, RotaryLayer]:
    """The layers that rotate, by their type, where those of a type are alike.

    Raises:
        ValueError: They are not, or no layer rotates.
    """
    types = layer_types(config) or [None] * config.whole("layers")
    found: dict[Any, RotaryLayer] = {}
    for kind, layer in zip(types, read_layers_of(config, length), strict=True):
        if layer and repr(found.setdefault(kind, layer).encoding) != repr(layer.encoding):
            raise ValueError(
                f"The layers differ one by one, as {field} says. Call rotaries_from_config for one "
                f"a layer."
            )
    if not found:
        raise ValueError(f"No layer has a rotary encoding, as {field} says.")
    return found


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
    schedule, width = _schedule(rope, length), width_of_head(config, layer_type)
    if 2 * len(schedule) > width:
        raise ValueError(
            f"Heads of {config.model_type or 'this model'} are {width} wide, and {rope.width} of "
            f"their channels rotate, in pairs: {2 * len(schedule)} would have to. Correct "
            f"head_dim, or hidden_size and num_attention_heads, whose ratio it is."
        )
    rotary = Rotary(
        schedule,
        head_dim=width,
        pairing=rope_models.pairing_of(config),
        # DeepSeek's heads are what does not turn, then what does.
        rotated="suffix" if latent_width(config) else "prefix",
    )
    return RotaryLayer(
        layer_type,
        rope,
        _multimodal(config, rope, rotary),
        rope_models.softmax_scale(config, rotary.head_dim, schedule.softmax_factor),
        rope_models.pairing_is_known(config),
    )


def _schedule(rope: Rope, length: int | None) -> Schedule:
    """The frequencies; what refuses them is told with the keys that it came from."""
    try:
        return schedule_of(rope, length)
    except ValueError as error:
        many = {k: v if not isinstance(v, list | tuple) else f"{len(v)} numbers" for k, v in
                rope.values.items()}  # fmt: skip
        raise ValueError(
            f"{error} It is read from the rope dictionary {many} (trained length "
            f"{rope.trained_length}, base rope_theta = {rope.base:g})."
        ) from None


def _multimodal(config: Configuration, rope: Rope, rotary: Rotary) -> Rotary | MultimodalRotary:
    """``rotary`` with its pairs shared out among axes, where the model does so."""
    dealt = rope_models.DEALT.get(config.family)
    usual = dealt or rope_models.IN_RUNS.get(config.family)
    sections = rope.values.get("mrope_section") or usual
    if sections is None:
        return rotary
    flag = rope.values.get("mrope_interleaved") or rope.values.get("interleaved")
    arrangement: Arrangement = "interleaved" if dealt or flag else "contiguous"
    try:
        shared = _dealt(sections, len(rotary.sincos)) if dealt else sections
        return MultimodalRotary(rotary, shared, arrangement)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"mrope_section is {sections!r} and head_dim {rotary.head_dim}, of which "
            f"{rotary.rotated_dim} channels rotate: {error} Correct one of them."
        ) from None


def _dealt(sections: Sequence[int], pairs: int) -> Sequence[int]:
    """Sections of all pairs, where models deal out what is given as far as there are pairs.

    Example:
        >>> _dealt((24, 20, 20), 64), _dealt((24, 20, 20), 32)
        ((24, 20, 20), (11, 11, 10))
    """
    if sum(sections) == pairs:
        return tuple(sections)
    apart = len(sections)
    rest = [len(range(i, min(n * apart, pairs), apart)) for i, n in enumerate(sections)][1:]
    return pairs - sum(rest), *rest


def _only(found: dict[Any, RotaryLayer]) -> QueryKeyEncoding:
    first, *others = found.values()
    if any(repr(other.encoding) != repr(first.encoding) for other in others):
        raise ValueError(
            f"The layers differ; their types are {', '.join(map(repr, found))}. Choose one with "
            f"layer_type={first.layer_type!r}, or call rotaries_from_config for one a layer."
        )
    return first.encoding
