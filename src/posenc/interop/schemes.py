"""Models that add something to their tokens or scores, and models of images: as objects.

``tokens``, ``scores``, ``patches`` and ``axial`` of ``families.json`` say which a type is.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isqrt
from typing import Any

from posenc.encodings.base import ScoreEncoding, TokenEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.scores.deberta import DeBERTa
from posenc.encodings.scores.swin import SwinBias, SwinV2Bias
from posenc.encodings.scores.t5 import T5Bias
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.interop.fields import Configuration, finite
from posenc.interop.rope_layers import width_of_head
from posenc.interop.rope_models import rotates
from posenc.interop.setup import LayerSetup, Part

META = "meta"
"""Where tables are made: what is read has widths, and no weights."""

COORDINATES = "positions are (row, column) of a patch"


def parts_of_schemes(config: Configuration, name: str) -> list[Part] | None:
    """Image models, and those that add to their tokens or their scores; None of other models."""
    stacks, how = config.facts.get("tokens", ()), config.facts.get("scores")
    if "axial" in config.facts or "patches" in config.facts:
        return [_image(config, "vision" if name == "text" else name)]
    if rotates(config) or config.values.get("sinusoidal_embeddings"):
        return None
    if how == "buckets" or len(stacks) == 2:
        return _encoder_decoder(config)
    if how in SCHEMES:
        return [SCHEMES[how](config, name)]
    return [_added(config, name)] if stacks else None


def part_of(
    config: Configuration,
    name: str,
    count: int,
    tokens: TokenEncoding | None = None,
    scores: ScoreEncoding | None = None,
    *,
    scale: float | None = None,
    notes: tuple[str, ...] = (),
) -> Part:
    """A part whose layers are alike."""
    held = Positional(tokens=tokens or (), scores=scores or ())
    trained = tokens.max_len if isinstance(tokens, Learned) else None
    layers = (LayerSetup(None, held, scale),) * count
    return Part(name, config.model_type, layers, trained, notes=notes)


def _notes(config: Configuration) -> tuple[str, ...]:
    """What there is to say; ``position_embedding_type`` may be for code of the file's own."""
    said = [config.facts["note"]] if "note" in config.facts else []
    if (named := config.values.get("position_embedding_type", "absolute")) != "absolute":
        said.append(f"transformers does not look at position_embedding_type, here {named!r}")
    return tuple(said)


def _added(config: Configuration, name: str) -> Part:
    """Vectors added to the tokens, before a single stack of layers."""
    (said,) = config.facts["tokens"]
    field, sines = said.get("unless", ("", said))
    tokens, scores = _tokens(config, sines if config.get(field) is False else said), None
    if config.facts.get("scores") == "mpnet":  # one table for all layers, beside the vectors
        buckets = config.whole("relative_attention_num_buckets")
        scores = T5Bias(config.whole("heads"), buckets, 128, device=META)
    count = config.whole("l_layers", "layers")
    part = part_of(config, name, count, tokens, scores, notes=_notes(config))
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
    if first == "context_length":  # Autoformer's decoder sees labels once more
        again = config.get("label_length") if config.model_type == "autoformer" else 0
        first = config.whole("context_length", "prediction_length") - (again or 0)
    elif isinstance(first, str):  # rows after that of padding
        first = int(finite(first, config.values.get(first))) + 1
    if "sines" in said:
        return Sinusoidal(width, convention=said["sines"], offset=first)
    rows = config.whole(said["learned"]) + said.get("beyond", 0)
    return Learned(width, rows - first, offset=first, device=META)


def _encoder_decoder(config: Configuration) -> list[Part]:
    """Two stacks of tokens, or buckets of distance: both ways above, and backwards below."""
    above = config.whole("encoder_layers", "num_encoder_layers", "layers")
    below = config.whole("decoder_layers", "num_decoder_layers", "layers")
    notes, scale, bias = _notes(config), None, (None, None)
    tokens: list[Any] = [_tokens(config, each) for each in config.facts.get("tokens", ())]
    if config.facts.get("scores") == "buckets":
        count, far = (
            config.whole(f"relative_attention_{n}") for n in ("num_buckets", "max_distance")
        )
        heads, tokens, scale = config.whole("heads"), [None, None], 1.0
        bias = [T5Bias(heads, count, far, each, device=META) for each in (True, False)]
    said = notes if scale else (*filter(None, [config.facts.get("decoder_note")]),)
    return [
        part_of(config, "encoder", above, tokens[0], bias[0], scale=scale, notes=notes),
        part_of(config, "decoder", below, tokens[1], bias[1], scale=scale, notes=said),
        part_of(config, "cross-attention", below, scale=scale),
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
    return part_of(config, name, config.whole("layers"), scores=slopes, scale=scale, notes=notes)


def _deberta(config: Configuration, name: str) -> Part:
    (said,), scores = config.facts["tokens"], None
    tokens = _tokens(config, said) if config.values.get("position_biased_input", True) else None
    terms = config.values.get("pos_att_type") or ()
    terms = terms.split("|") if isinstance(terms, str) else terms
    if config.get("relative_attention") and terms:
        longest, heads = config.get("max_relative_positions") or 0, config.whole("heads")
        longest = longest if longest > 0 else config.whole("longest")
        buckets = config.get("position_buckets") if config.model_type == "deberta-v2" else None
        scores = DeBERTa(
            heads,
            config.whole("hidden_size") // heads,
            buckets=buckets if buckets and buckets > 0 else longest,
            max_distance=longest,
            terms=tuple(terms),  # type: ignore[arg-type]
            device=META,
        )
    part = part_of(config, name, config.whole("layers"), tokens, scores)
    return replace(part, trained_length=config.get("longest"))


def _windowed(config: Configuration, name: str) -> Part:
    """Swin: stages of growing width, each with its own number of heads.

    The second version cuts windows off to the rows of a stage, and knows those that it was trained
    on. Swin2SR, which is of it, has as many patches in all stages, and was trained on none.
    """
    depths, heads = config.listed("depths") or (), config.listed("heads") or ()
    window, layers = config.whole("window_size"), []
    pretrained = config.values.get("pretrained_window_sizes") or 0
    for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
        if config.facts["scores"] == "windowed":
            bias = SwinBias(count, window, device=META)
        else:
            alike = config.model_type == "swin2sr"
            rows = patches_of(config)[0] // (1 if alike else 2**stage)
            known = pretrained[stage] if isinstance(pretrained, list | tuple) else pretrained
            known = None if alike else known or None
            bias = SwinV2Bias(count, min(window, rows), pretrained_window=known, device=META)
        layers += [LayerSetup(f"stage {stage}", Positional(scores=bias))] * depth
    notes = (f"attention within windows of {window} × {window} patches, every other one shifted",)
    if config.values.get("use_absolute_embeddings"):
        notes += ("a learned table of patches besides",)
    return Part(name, config.model_type, tuple(layers), notes=notes)


SCHEMES = {"slopes": _slopes, "deberta": _deberta, "windowed": _windowed, "windowed v2": _windowed}
"""By what ``scores`` of the facts say."""

# Images -----------------------------------------------------------------------------------------


def _image(config: Configuration, name: str) -> Part:
    """The encodings of an image model: a table of patches, rotations by two coordinates."""
    facts, count = config.facts, config.whole("layers", "depth")
    form, scale, rotary = facts.get("axial"), None, []
    if form == "":
        usual = "rotates by the two coordinates of a patch, in a form that was not held against it"
        words = facts.get("axial_words", usual)
        return Part(name, config.model_type, (LayerSetup(None, None),) * count, notes=(words,))
    tokens, notes = _table(config)
    if form is not None:
        width = config.whole(facts.get("width", "hidden_size"), "hidden_size")
        head = config.get("head_dim") or width // config.whole("heads")
        rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
        given = (rope.get("rope_theta"), config.get("rope_theta"), facts.get("theta"))
        base = next((each for each in given if each is not None), None)
        rotary, scale = [AxialRotary(head, base, form=form)], head**-0.5
        notes = (COORDINATES, *notes)
    layer = LayerSetup(None, Positional(tokens=tokens, queries_keys=rotary), scale)
    return Part(name, config.model_type, (layer,) * count, notes=notes)


def _table(config: Configuration) -> tuple[list[TokenEncoding], tuple[str, ...]]:
    """A table of patches, and notes."""
    said = tuple(x for x in (config.facts.get("note"),) if x)
    if "patches" not in config.facts:
        return [], said
    if _heeded(config, "use_absolute_position_embeddings") is False:
        return [], ("without a table of patches, as use_absolute_position_embeddings says",)
    width = config.whole("hidden_size")
    if config.model_type == "aimv2_vision_model" and config.get("is_native"):
        return [AxialSinusoidal(width, "mae")], (COORDINATES,)
    before = config.facts["patches"] + bool(_heeded(config, "distilled"))
    table = LearnedGrid(width, patches_of(config), prefix=before, device=META)
    return [table], (*said, "interpolated where an image has another number of patches")


def patches_of(config: Configuration) -> tuple[int, ...]:
    """Rows and columns of the patches of an image as large as those that a model was trained on."""
    if _heeded(config, "num_patches") is not None:
        return (isqrt(config.whole("num_patches")),) * 2
    image = _heeded(config, "pretrain_image_size") or config.get("image_size")
    given = (image, config.get("patch_size"))
    size, patch = (tuple(x) if isinstance(x, list | tuple) else (x, x) for x in given)
    if None in (*size, *patch):
        raise ValueError(f"image_size is {size} and patch_size {patch}; both are needed.")
    return tuple(a // b for a, b in zip(size, patch, strict=True))


def _heeded(config: Configuration, field: str) -> Any:
    """What a field says to a model whose class has it; None of others, which do not look at it."""
    return config.get(field) if field in config.facts.get("defaults", {}) else None
