"""Models that add something to their tokens or their scores, as objects.

``tokens`` and ``scores`` of ``families.json`` say which a type is. What is read has widths and no
weights: tables are on the meta device.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from posenc.encodings.base import TokenEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.scores.deberta import DeBERTa, Term
from posenc.encodings.scores.t5 import T5Bias
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.interop.fields import Configuration, finite
from posenc.interop.image_setup import image_part, windowed_part
from posenc.interop.rope_layers import width_of_head
from posenc.interop.rope_models import rotates
from posenc.interop.setup import Part, alike


def parts_of_schemes(config: Configuration, name: str) -> list[Part] | None:
    """Image models, and those that add to their tokens or their scores; None of other models."""
    stacks, how = config.facts.get("tokens", ()), config.facts.get("scores")
    if "axial" in config.facts or "patches" in config.facts:
        return [image_part(config, "vision" if name == "text" else name)]
    if rotates(config) or config.values.get("sinusoidal_embeddings"):
        return None
    if how == "buckets" or len(stacks) == 2:
        return _encoder_decoder(config)
    if how in SCHEMES:
        return [SCHEMES[how](config, name)]
    return [_added(config, name)] if stacks else None


def _notes(config: Configuration) -> tuple[str, ...]:
    """What there is to say; ``position_embedding_type`` may be for code of the file's own."""
    said = [*config.facts.get("notes", ())]
    if (named := config.values.get("position_embedding_type", "absolute")) != "absolute":
        said.append(f"transformers does not look at position_embedding_type, here {named!r}")
    return tuple(said)


def _added(config: Configuration, name: str) -> Part:
    """Vectors added to the tokens, before a single stack of layers."""
    (said,) = config.facts["tokens"]
    field, sines = said.get("unless", ("", said))
    tokens, scores = _tokens(config, sines if config.get(field) is False else said), []
    if config.facts.get("scores") == "mpnet":  # one table for all layers, beside the vectors
        buckets = config.whole("relative_attention_num_buckets")
        scores = [T5Bias(config.whole("heads"), buckets, 128, device="meta")]
    count, held = config.whole("l_layers", "layers"), Positional(tokens, scores=scores)
    part = alike(name, config.model_type, count, held, notes=_notes(config))
    if (turns := config.listed("attention_types")) is None:
        return part
    # GPT-Neo's layers, some of which see the last ``window_size`` keys alone.
    kinds = [kind for several, times in turns for kind in [*several] * times]
    size = {"global": None, "local": config.whole("window_size")}
    pairs = zip(kinds, part.layers, strict=True)
    layers = (replace(layer, layer_type=kind, window=size[kind]) for kind, layer in pairs)
    return replace(part, layers=tuple(layers))


def _tokens(config: Configuration, said: Mapping[str, Any]) -> TokenEncoding:
    """What ``tokens`` of the facts say of one stack: learned rows, or sines of a convention."""
    width, first = config.whole(said.get("width", "hidden_size")), said.get("first", 0)
    if isinstance(first, list):  # after the context, of which Autoformer's decoder repeats some
        first = config.whole(*first) - (config.get(said.get("less", "")) or 0)
    elif isinstance(first, str):  # rows after that of padding
        first = int(finite(first, config.values.get(first))) + 1
    if "sines" in said:
        return Sinusoidal(width, convention=said["sines"], offset=first)
    rows = config.whole(said["learned"]) + said.get("beyond", 0)
    return Learned(width, rows - first, offset=first, device="meta")


def _encoder_decoder(config: Configuration) -> list[Part]:
    """Two stacks of tokens, or buckets of distance: both ways above, and backwards below."""
    above = config.whole("encoder_layers", "num_encoder_layers", "layers")
    below = config.whole("decoder_layers", "num_decoder_layers", "layers")
    if config.facts.get("scores") == "buckets":
        count = config.whole("relative_attention_num_buckets")
        far, heads = config.whole("relative_attention_max_distance"), config.whole("heads")
        bias = [T5Bias(heads, count, far, each, device="meta") for each in (True, False)]
        held, scale, said = [Positional(scores=each) for each in bias], 1.0, _notes(config)
    else:
        held = [Positional(_tokens(config, each)) for each in config.facts["tokens"]]
        scale, said = None, tuple(config.facts.get("decoder_notes", ()))
    return [
        alike("encoder", config.model_type, above, held[0], scale, _notes(config)),
        alike("decoder", config.model_type, below, held[1], scale, said),
        alike("cross-attention", config.model_type, below, Positional(), scale),
    ]


def _slopes(config: Configuration, name: str) -> Part:
    """ALiBi, as Bloom, MPT and Falcon have it."""
    heads, scale = config.whole("heads"), width_of_head(config) ** -0.5
    attention, notes = config.dictionary("attn_config"), _notes(config)
    steepest = attention.get("alibi_bias_max", 8)
    slopes = ALiBi(heads, alibi_bias_max=float(finite("alibi_bias_max", steepest)))
    if steepest != 8:
        notes = (f"transformers does not look at alibi_bias_max, here {steepest}, and takes 8",)
    if attention.get("alibi") is False:
        notes += ("attn_config says alibi: false; transformers adds it all the same",)
    if attention.get("softmax_scale") is not None:
        scale = finite("softmax_scale", attention["softmax_scale"])
    if config.model_type == "falcon":  # it scales biases with the products
        slopes = ALiBi(heads, slopes=[m * scale for m in slopes.slopes])
    count, held = config.whole("layers"), Positional(scores=slopes)
    return alike(name, config.model_type, count, held, scale, notes)


def _deberta(config: Configuration, name: str) -> Part:
    (said,), scores = config.facts["tokens"], []
    tokens = [_tokens(config, said)] if config.values.get("position_biased_input", True) else []
    terms = config.values.get("pos_att_type") or ()
    terms = terms.split("|") if isinstance(terms, str) else terms
    if config.get("relative_attention") and terms:
        longest, heads = config.get("max_relative_positions") or 0, config.whole("heads")
        longest = longest if longest > 0 else config.whole("longest")
        buckets = config.get("position_buckets") if config.model_type == "deberta-v2" else None
        buckets = buckets if buckets and buckets > 0 else longest
        width, known = config.whole("hidden_size") // heads, cast(tuple[Term, ...], tuple(terms))
        scores = [DeBERTa(heads, width, buckets, longest, terms=known, device="meta")]
    part = alike(name, config.model_type, config.whole("layers"), Positional(tokens, scores=scores))
    return replace(part, trained_length=config.get("longest"))


SCHEMES = {
    "slopes": _slopes, "deberta": _deberta, "windowed": windowed_part, "windowed v2": windowed_part,
}  # fmt: skip
"""By what ``scores`` of the facts say."""
