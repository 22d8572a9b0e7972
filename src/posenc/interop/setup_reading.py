"""From any configuration of Hugging Face to the positional set-up of its model."""

from dataclasses import replace
from typing import Any

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.interop.configurations import NESTS, Config, parts_of, read_whole, strays
from posenc.interop.fields import Configuration, check_length, has_own_class
from posenc.interop.image_setup import foreign_part, timm_part
from posenc.interop.layer_types import layer_types, unverified, window_of
from posenc.interop.rope_models import of_its_own_code, refusal, rotates, unheeded
from posenc.interop.rotary_config import RotaryLayer, read_layers_of, temperatures_of
from posenc.interop.schemes import parts_of_schemes
from posenc.interop.setup import LayerSetup, Part, PositionalSetup

TEXTS = ("text_config", "llm_config", "language_config")
"""Fields of parts that are called ``text``; others by their own name, less ``_config``."""

OWN_CODE = "auto_map names code of its own, which is not read: this is what the file would mean"

SHORT_ALONE = "beyond the trained length transformers keeps short_factor, and takes long_mscale"


def positional_setup(config: Config, *, length: int | None = None) -> PositionalSetup:
    """What a model does with positions, part by part and layer by layer.

    Reads configurations of transformers, as objects, dictionaries or files; what a file leaves out
    is what its class has by default. Files of transformers in diffusers (FLUX, Wan, HunyuanVideo,
    LTX, Qwen-Image, CogVideoX, SD3, DiT) and of vision transformers in timm are known by their
    class, or by their name. What else meets the embeddings (factors, norms, dropout) is not told.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        length: Of the sequences, in tokens, for frequencies that depend on it.

    Raises:
        ValueError: The model is not known and its file does not say what it does, a key is
            unknown, or a value does not fit.
        OSError: The file cannot be read.

    Example:
        >>> setup = positional_setup({"model_type": "gpt2"})
        >>> setup["text"].layers[0].positional.tokens[0]
        Learned(768, max_len=1024)
        >>> positional_setup({"model_type": "t5"})["decoder"].layers[0].positional.scores[0]
        T5Bias(heads=8, bidirectional=False)
    """
    check_length(length)
    whole = read_whole(config)
    if (part := foreign_part(whole.values)) is not None:
        return PositionalSetup(part.model_type, (part,))
    name = whole.facts.get("sense", "text")
    return PositionalSetup(whole.model_type, tuple(_parts(whole, name, length)))


def _parts(config: Configuration, name: str, length: int | None) -> list[Part]:
    """All parts, with what there is to say of code of its own and of fields beside parts."""
    found = _nested(config, name, length)
    if has_own_class(config):
        found = [
            replace(part, certainty="assumed", notes=(*dict.fromkeys((*part.notes, OWN_CODE)),))
            for part in found
        ]
    fields, words = strays(config)
    if fields:
        notes = (*found[0].notes, words)
        found[0] = replace(found[0], certainty="assumed", notes=notes, strays=fields)
    return found


def _nested(config: Configuration, name: str, length: int | None) -> list[Part]:
    nested, whole = parts_of(config), config.with_defaults()
    # Layers whose fields stand beside nested parts, as those of CSM's text model.
    rotated = rotates(config) and whole.field("layers") and whole.field("hidden_size")
    beside = not {*NESTS} & {*nested} and (rotated or "words" in config.facts)
    found = _own(whole, name, length) if beside or not nested else []
    own = [part.name for part in found]
    for field, inner in nested.items():
        called = "text" if field in TEXTS else field.removesuffix("_config")
        if inner.facts or rotates(inner):
            for part in _parts(inner, called, length):
                within = part.name in own or (part.name != called and called != "text")
                found.append(replace(part, name=f"{called}.{part.name}" if within else part.name))
        else:
            words = config.facts.get("untyped", {}).get(field)
            unknown = f"its type is {inner.model_type or 'not named'}, and is not known here"
            sure = "read" if words else "assumed"
            found.append(Part(called, inner.model_type, (), None, sure, (words or unknown,)))
    return found


def _own(config: Configuration, name: str, length: int | None) -> list[Part]:
    """The parts of a configuration that holds no others."""
    config = of_its_own_code(config)
    parts = parts_of_schemes(config, name) or _read(config, name, length)
    who = "the model does not look at it" if config.is_known else "it is not read here"
    said = (f"{field} stands in the file, and {who}" for field in unheeded(config))
    parts[0] = replace(parts[0], notes=(*parts[0].notes, *said))
    objects = any(layer.positional for layer in parts[0].layers)
    if objects and config.facts.get("verified") and SHORT_ALONE not in parts[0].notes:
        return [replace(part, certainty="verified") for part in parts]
    return parts


def _read(config: Configuration, name: str, length: int | None) -> list[Part]:
    """A model that rotates or does nothing, in objects, and others in words."""
    facts, turns, why = config.facts, rotates(config), refusal(config)
    if facts.get("none") and not turns:
        types = layer_types(config) or [None] * config.whole("layers")
        layers = tuple(LayerSetup(kind, Positional()) for kind in types)
        return [Part(name, config.model_type, layers)]
    if config.model_type == "timm_wrapper" and (part := timm_part(config.values)):
        return [replace(part, model_type="timm_wrapper")]
    if turns and why is None:
        return _rotary(config, name, length)
    words = f"no encoding of the library is this: {why}" if why else facts.get("words")
    if words is None and not config.is_known:
        kind = config.model_type or "a model without model_type"
        raise ValueError(f"What {kind} does with positions is not known, and no rope_theta says.")
    parts, sure = ", ".join(facts.get("parts", ())), "read" if words else "assumed"
    unread = "what its code does with positions is not read here"
    usual = f"as its parts do: {parts}" if parts else unread
    count = config.get("layers")
    empty = (LayerSetup(None, None),) * (count if isinstance(count, int) and count > 0 else 1)
    return [Part(name, config.model_type, empty, None, sure, (words or usual,))]


def _rotary(config: Configuration, name: str, length: int | None) -> list[Part]:
    facts, layers = config.facts, read_layers_of(config, length)
    types = layer_types(config) or [None] * len(layers)
    several = zip(layers, types, temperatures_of(config), strict=True)
    made = tuple(_layer(config, index, *each) for index, each in enumerate(several))
    turning = [layer for layer in layers if layer]
    known = config.is_known and all(layer.pairing_is_known for layer in turning)
    notes = [] if (words := unverified(config)) is None else [words]
    if (dual := config.dictionary("dual_chunk_attention_config")).get("chunk_size"):
        first = dual.get("original_max_position_embeddings", "its trained length")
        notes.append(
            f"beyond {first} positions, engines with dual chunk attention remap distances by "
            f"chunks of {dual['chunk_size']} (posenc.DualChunk); transformers does not"
        )
    if facts.get("by_length") and any(_leaves_out(layer, length) for layer in turning):
        notes.append(SHORT_ALONE)
    trained = turning[0].rope.trained_length if turning else None
    sure = "read" if known else "assumed"
    parts = [Part(name, config.model_type, made, trained, sure, tuple(notes))]
    if "indexer" in facts and config.get("index_head_dim"):
        held = tuple(_indexer(config, layer) for layer in layers)
        parts.append(Part("indexer", config.model_type, held, certainty=sure))
    return parts


def _leaves_out(layer: RotaryLayer, length: int | None) -> bool:
    """Whether PhiMoE's class leaves out what its configuration says of long rows."""
    rope = layer.rope
    lists = {str(rope.values.get(name)) for name in rope.rope_type.lists}
    beyond = (length or 0) > (rope.trained_length or 0)
    return rope.kind == "longrope" and beyond and len(lists) > 1


def _layer(
    config: Configuration, index: int, layer: RotaryLayer | None, kind: str | None, heat: Any
) -> LayerSetup:
    turning = [layer.encoding] if layer else []
    queries = [heat] if isinstance(heat, QueryTemperature) else []
    scores: list[Any] = [heat] if heat is not None and not queries else []
    chunked = kind == "chunked_attention" and config.get("attention_chunk_size") is not None
    return LayerSetup(
        kind,
        Positional(queries_keys=[*turning, *queries], scores=scores),
        layer.softmax_scale if layer else None,
        window_of(config, index, kind),
        config.whole("attention_chunk_size") if chunked else None,
        layer.rope if layer else None,
    )


def _indexer(config: Configuration, layer: RotaryLayer | None) -> LayerSetup:
    """The indexer of sparse attention, which pairs channels in a way of its own."""
    if layer is None:
        return LayerSetup(None, Positional())
    width, pairing = config.whole("index_head_dim"), config.facts["indexer"]
    turned = Rotary(layer.rotary.frequencies, head_dim=width, pairing=pairing)
    return LayerSetup(None, Positional(queries_keys=turned), rope=layer.rope)
