"""From any configuration of Hugging Face to the positional set-up of its model."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.interop import rope_models, schemes
from posenc.interop.configurations import (
    NESTS,
    Configuration,
    check_length,
    has_own_class,
    leaves_out,
    parts_of,
    read_whole,
    standing,
    unreached,
)
from posenc.interop.diffusion_setup import (
    foreign_part,
    is_foreign,
    is_told_by_name,
    timm_part,
)  # fmt: skip
from posenc.interop.image_models import AXIAL
from posenc.interop.image_setup import image_part
from posenc.interop.layer_types import layer_types
from posenc.interop.rope_layers import of_its_own_code, rotates, strange
from posenc.interop.rotary_config import RotaryLayer, read_layers_of
from posenc.interop.setup import Certainty, LayerSetup, Part, PositionalSetup
from posenc.interop.temperature_config import temperatures_of
from posenc.interop.token_setup import score_parts, token_parts
from posenc.interop.unheeded import unheeded
from posenc.interop.verified import VERIFIED
from posenc.interop.windows import unverified, window_of

NAMES = {
    "text_config": "text",
    "llm_config": "text",
    "language_config": "text",
    "thinker_config": "thinker",
    "vision_config": "vision",
    "audio_config": "audio",
    "encoder_config": "encoder",
    "decoder_config": "decoder",
}
"""What the parts are called; any other field by its own name, less ``_config``."""

UNREAD = "what its code does with positions is not read here"


def positional_setup(
    config: Any | dict[str, Any] | str | Path, *, length: int | None = None
) -> PositionalSetup:
    """What a model does with positions, part by part and layer by layer.

    Reads configurations of transformers, as objects, dictionaries or files; a file is read without
    transformers, and what it leaves out is what its class has by default. Files of transformers in
    diffusers (FLUX, Wan, HunyuanVideo, LTX, Qwen-Image, CogVideoX, SD3, DiT) and of vision
    transformers in timm are known by their class, or by their name. What else meets the embeddings
    (a factor as of ``scale_embedding``, norms, dropout) is the model's own and not told.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        length: Of the sequences, in tokens, for frequencies that depend on it. Nothing else does:
            other frequencies are as the configuration says, and a learned table has its rows.

    Raises:
        ValueError: The model is not known and its file does not say what it does, a key is
            unknown, or a value does not fit; the message says which. Or ``length`` is no whole
            number from 1 on.
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
    if is_foreign(whole.values):
        part = foreign_part(whole.values)
        return PositionalSetup(part.model_type, (part,))
    name = whole.facts.get("sense", "text")
    return PositionalSetup(whole.model_type, tuple(_parts(whole, name, length)))


def _parts(config: Configuration, name: str, length: int | None) -> Sequence[Part]:
    found = _read_parts(config, name, length)
    if has_own_class(config):
        known = f" and the class of {config.model_type} in transformers" if config.facts else ""
        meant = f"this is what the file{known} would have it be"
        if of_its_own_code(whole := config.with_defaults()) is not whole:
            meant = (
                f"the class of {config.model_type} in transformers does not look at "
                f"{', '.join(strange(config))}, so this is what such a file of an unknown model is "
                f"taken to be"
            )
        found = [_of_own_code(part, f"{OWN_CODE}; {meant}") for part in found]
    if not (beside := unreached(config)):
        return found
    first, *others = found
    made = "left out" if leaves_out(config) else "read as this one's"
    stand, are, them = standing(beside)
    words = (
        f"{stand} beside the parts and {are} {made}; the class of {config.model_type} in "
        f"transformers does not look for {them} there, and builds this part of its defaults"
    )
    notes = (*first.notes, words)
    return [replace(first, certainty="assumed", notes=notes, strays=tuple(beside)), *others]


OWN_CODE = "auto_map names code of its own, which trust_remote_code runs and which is not read here"
"""What is said of a part once, by the innermost file that has it."""


def _of_own_code(part: Part, words: str) -> Part:
    is_said = any(note.startswith(OWN_CODE) for note in part.notes)
    return part if is_said else replace(part, certainty="assumed", notes=(*part.notes, words))


def _read_parts(config: Configuration, name: str, length: int | None) -> Sequence[Part]:
    nested = parts_of(config)
    if not nested:
        return _own(config.with_defaults(), name, length)
    found = _beside(config, nested, name, length)
    own = [part.name for part in found]
    for field, inner in nested.items():
        called = NAMES.get(field, field.removesuffix("_config"))
        if not inner.facts and not rotates(inner):
            found.append(_untyped(config, field, called, inner))
            continue
        for part in _parts(inner, called, length):
            within = part.name in own or (part.name != called and called != "text")
            prefix = f"{called}." if within else ""
            found.append(replace(part, name=prefix + part.name))
    return found


def _beside(
    config: Configuration, nested: Collection[str], name: str, length: int | None
) -> list[Part]:
    """The parts of layers whose fields stand beside those of nested parts, as CSM's text model."""
    whole = config.with_defaults()
    rotated = rotates(config) and whole.field("layers") and whole.field("hidden_size")
    if set(NESTS) & set(nested) or not (rotated or config.model_type in schemes.WORDS):
        return []
    return list(_own(whole, name, length))


def _own(config: Configuration, name: str, length: int | None) -> Sequence[Part]:
    """The parts of a configuration that holds no others."""
    config = of_its_own_code(config)
    first, *others = _own_parts(config, name, length)
    who = "the model does not look at it" if config.facts else "it is not read here"
    said = [f"{name} stands in the file, and {who}" for name in unheeded(config)]
    return [replace(first, notes=(*first.notes, *said)), *others]


def _own_parts(config: Configuration, name: str, length: int | None) -> Sequence[Part]:
    if config.model_type in AXIAL or config.model_type in schemes.PATCHES:
        return [_sure(image_part(config, name))]
    if (parts := token_parts(config, name) or score_parts(config, name)) is not None:
        return [_sure(part) for part in parts]
    if config.model_type in schemes.NONE and not rotates(config):
        return [_sure(_plain(config, name))]
    architecture = config.values.get("architecture")
    if config.model_type == "timm_wrapper" and is_told_by_name(architecture):
        return [replace(timm_part(str(architecture), config.values), model_type="timm_wrapper")]
    if (words := _words(config)) is not None:
        return [Part(name, config.model_type, _empty(config), notes=(words,))]
    if rotates(config):
        return _rotary(config, name, length)
    if config.facts:
        words = _absent(config) or UNREAD
        return [Part(name, config.model_type, _empty(config), certainty="assumed", notes=(words,))]
    raise ValueError(
        f"What {config.model_type or 'a model without model_type'} does with positions is not "
        f"known here, and its configuration has no rope_parameters, rope_theta or the like. See "
        f"docs/models.md for the types that are."
    )


def _untyped(config: Configuration, field: str, name: str, inner: Configuration) -> Part:
    """A part that is no model of its own, or none that is known."""
    if (words := schemes.UNTYPED.get((config.model_type, field))) is not None:
        return Part(name, inner.model_type, (), notes=(words,))
    named = repr(inner.model_type) if inner.model_type else "not named"
    words = f"not known here: its type is {named}, and its fields speak of no rotation"
    return Part(name, inner.model_type, (), certainty="assumed", notes=(words,))


def _absent(config: Configuration) -> str | None:
    """What to say of a model of several parts whose file holds none of them."""
    parts = config.facts.get("parts")
    if not parts:
        return None
    return f"as its parts do, and this file holds none of them: {', '.join(parts)}"


def _words(config: Configuration) -> str | None:
    if why := rope_models.refusal(config):
        return f"no encoding of the library is this: {why}"
    if config.model_type in schemes.CONVOLUTIONAL:
        return schemes.CONVOLUTIONAL[config.model_type]
    if config.model_type in schemes.WORDS and not rotates(config):
        return schemes.WORDS[config.model_type]
    return None


def _empty(config: Configuration) -> tuple[LayerSetup, ...]:
    try:
        count = config.whole("layers")
    except ValueError:
        count = 1
    return tuple(LayerSetup(None, None) for _ in range(count))


def _plain(config: Configuration, name: str) -> Part:
    types = layer_types(config) or [None] * config.whole("layers")
    nothing = Positional()
    return Part(name, config.model_type, tuple(LayerSetup(kind, nothing) for kind in types))


def _sure(part: Part) -> Part:
    """The part with how sure it is."""
    certainty: Certainty = "verified" if part.model_type in VERIFIED else part.certainty
    return replace(part, certainty=certainty)


def _rotary(config: Configuration, name: str, length: int | None) -> list[Part]:
    layers = read_layers_of(config, length)
    temperatures = temperatures_of(config)
    types = layer_types(config) or [None] * len(layers)
    made = tuple(
        _layer(config, index, layer, kind, heat)
        for index, (layer, kind, heat) in enumerate(zip(layers, types, temperatures, strict=True))
    )
    known = any(layer and layer.pairing_is_known for layer in layers) or not any(layers)
    trained = next((layer.rope.trained_length for layer in layers if layer), None)
    notes = tuple(_notes(config))
    certainty: Certainty = "read" if known and config.facts else "assumed"
    part = Part(name, config.model_type, made, trained, certainty, notes)
    parts = [part, *_indexer(config, layers, certainty)]
    if any(layer and _runs_otherwise(config, layer, length) for layer in layers):
        return [replace(part, notes=(*notes, SHORT_ALONE)), *parts[1:]]
    return [_sure(each) for each in parts]


def _runs_otherwise(config: Configuration, layer: RotaryLayer, length: int | None) -> bool:
    """Whether the class of transformers leaves out what its configuration says of long rows."""
    rope = layer.rope
    if config.family not in rope_models.BY_LENGTH or rope.rope_type.name != "longrope":
        return False
    lists = (rope.values.get(name) for name in rope.rope_type.lists)
    return (length or 0) > (rope.trained_length or 0) and len(set(map(str, lists))) > 1


SHORT_ALONE = (
    "beyond the trained length this has long_factor, as the paper and other engines have it; the "
    "class in transformers keeps short_factor there and takes long_mscale alone"
)
"""What is said of a model that does not run, in transformers, as its configuration reads."""


def _layer(
    config: Configuration,
    index: int,
    layer: RotaryLayer | None,
    kind: str | None,
    heat: object,
) -> LayerSetup:
    rotations = [layer.encoding] if layer else []
    queries = [heat] if isinstance(heat, QueryTemperature) else []
    scores = [heat] if heat is not None and not queries else []
    return LayerSetup(
        kind,
        Positional(queries_keys=[*rotations, *queries], scores=scores),  # type: ignore[arg-type]
        layer.softmax_scale if layer else None,
        window_of(config, index, kind),
        _chunk(config, kind),
        layer.rope if layer else None,
    )


def _chunk(config: Configuration, kind: str | None) -> int | None:
    if kind != "chunked_attention" or config.get("attention_chunk_size") is None:
        return None
    return config.whole("attention_chunk_size")


def _notes(config: Configuration) -> list[str]:
    said = []
    if (dual := config.values.get("dual_chunk_attention_config")) is not None:
        if not isinstance(dual, dict) or "chunk_size" not in dual:
            raise ValueError(
                f"dual_chunk_attention_config is {dual!r}; it must be an object with chunk_size."
            )
        said.append(
            f"beyond {dual.get('original_max_position_embeddings', 'its trained length')} "
            f"positions, engines with dual chunk attention remap distances by chunks of "
            f"{dual['chunk_size']} (posenc.DualChunk); transformers does not"
        )
    if config.get("local_attention"):
        reach = config.get("sliding_window") or config.whole("local_attention") // 2
        if config.family == "modernbert_decoder":
            said.append(f"sliding layers see the last {reach} keys")
        else:
            said.append(f"sliding layers see keys up to {reach} positions to either side")
    if (words := unverified(config)) is not None:
        said.append(words)
    return said


def _indexer(
    config: Configuration, layers: Sequence[RotaryLayer | None], certainty: Certainty
) -> list[Part]:
    """The indexer of sparse attention, which pairs channels in a way of its own."""
    pairing = rope_models.INDEXERS.get(config.family)
    if pairing is None or not config.get("index_head_dim"):
        return []
    nothing = LayerSetup(None, Positional())
    made = []
    for layer in layers:
        if layer is None:
            made.append(nothing)
            continue
        rotary = Rotary(
            layer.rotary.frequencies, head_dim=config.whole("index_head_dim"), pairing=pairing
        )
        made.append(LayerSetup(None, Positional(queries_keys=rotary), rope=layer.rope))
    return [Part("indexer", config.model_type, tuple(made), certainty=certainty)]
