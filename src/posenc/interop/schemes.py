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
from posenc.interop.setup import LayerSetup, Part

META = "meta"
"""Where tables are made: what is read has widths, and no weights."""

COORDINATES = "positions are (row, column) of a patch"


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


def added_parts(config: Configuration, name: str) -> list[Part] | None:
    """Models that add to their tokens or to their scores; None of other models."""
    stacks, how = config.facts.get("tokens", ()), config.facts.get("scores")
    if len(stacks) == 2 or how == "buckets":
        return _encoder_decoder(config)
    if how == "slopes" and (config.model_type != "falcon" or config.get("alibi")):
        return [_slopes(config, name)]
    if how in ("windowed", "windowed v2"):
        return [_windowed(config, name)]
    by_field = config.values.get("position_embedding_type") != "absolute"
    rotates = by_field and config.facts.get("rotates")
    if not stacks or rotates or config.values.get("sinusoidal_embeddings"):
        return None
    if how == "deberta":
        return [_deberta(config, name, stacks[0])]
    field, sines = stacks[0].get("unless", ("", stacks[0]))
    tokens = _tokens(config, sines if config.get(field) is False else stacks[0])
    count = config.whole("l_layers" if config.get("l_layers") else "layers")
    scores = None
    if how == "mpnet":  # one table for all layers, beside the learned vectors
        buckets = config.whole("relative_attention_num_buckets")
        scores = T5Bias(config.whole("heads"), buckets, 128, device=META)
    part = part_of(config, name, count, tokens, scores, notes=_notes(config))
    return [_local(config, part) if config.get("attention_types") else part]


def _notes(config: Configuration) -> tuple[str, ...]:
    """What there is to say; ``position_embedding_type`` may be for code of the file's own."""
    unset = config.model_type == "tapas" and not config.get("reset_position_index_per_cell")
    said = [config.facts["note"]] if "note" in config.facts and not unset else []
    if (named := config.values.get("position_embedding_type", "absolute")) != "absolute":
        said.append(f"transformers does not look at position_embedding_type, here {named!r}")
    return tuple(said)


def _local(config: Configuration, part: Part) -> Part:
    """GPT-Neo's layers, some of which see the last ``window_size`` keys alone."""
    kinds = [kind for several, n in config.values["attention_types"] for kind in [*several] * n]
    size = {"global": None, "local": config.whole("window_size")}
    pairs = zip(kinds, part.layers, strict=True)
    layers = (replace(layer, layer_type=kind, window=size[kind]) for kind, layer in pairs)
    return replace(part, layers=tuple(layers))


def _tokens(config: Configuration, said: Mapping[str, Any]) -> TokenEncoding:
    """What ``tokens`` of the facts say of one stack: learned rows, or sines of a convention."""
    width, first = config.whole(said.get("width", "hidden_size")), said.get("first", 0)
    if first == "context_length":  # Autoformer's decoder sees labels once more
        length = "context_length" if config.get("context_length") else "prediction_length"
        again = config.get("label_length") if config.model_type == "autoformer" else 0
        first = config.whole(length) - (again or 0)
    elif isinstance(first, str):  # rows after that of padding
        first = int(finite(first, config.values.get(first))) + 1
    if first < 0:
        raise ValueError(f"Position 0 of {config.model_type} is row {first}; it has none.")
    if "sines" in said:
        return Sinusoidal(width, convention=said["sines"], offset=first)
    rows = config.whole(said["learned"]) + said.get("beyond", 0)
    return Learned(width, rows - first, offset=first, device=META)


def _encoder_decoder(config: Configuration) -> list[Part]:
    """Two stacks of tokens, or buckets of distance: both ways above, and backwards below."""
    above, below = (
        config.whole(next((n for n in names if config.get(n)), "layers"))
        for names in (
            ("encoder_layers", "num_encoder_layers"),
            ("decoder_layers", "num_decoder_layers"),
        )
    )
    if config.facts.get("scores") != "buckets":
        first, second = (_tokens(config, each) for each in config.facts["tokens"])
        said = config.facts.get("decoder_note")
        return [
            part_of(config, "encoder", above, first, notes=_notes(config)),
            part_of(config, "decoder", below, second, notes=() if said is None else (said,)),
            part_of(config, "cross-attention", below),
        ]
    count = config.whole("relative_attention_num_buckets")
    far, heads = config.whole("relative_attention_max_distance"), config.whole("heads")
    both, back = (T5Bias(heads, count, far, each, device=META) for each in (True, False))
    notes = ("one table for all layers" if config.model_type != "umt5" else "a table a layer",)
    return [
        part_of(config, "encoder", above, scores=both, scale=1.0, notes=notes),
        part_of(config, "decoder", below, scores=back, scale=1.0, notes=notes),
        part_of(config, "cross-attention", below, scale=1.0),
    ]


def _slopes(config: Configuration, name: str) -> Part:
    """ALiBi, as Bloom, MPT and Falcon have it."""
    heads, scale = config.whole("heads"), width_of_head(config) ** -0.5
    attention, notes = config.dictionary("attn_config"), ()
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
        notes = ("the model rounds slopes to bfloat16, and scales biases as it does products",)
    return part_of(config, name, config.whole("layers"), scores=slopes, scale=scale, notes=notes)


def _deberta(config: Configuration, name: str, said: Mapping[str, Any]) -> Part:
    tokens = _tokens(config, said) if config.values.get("position_biased_input", True) else None
    scores, terms = None, config.values.get("pos_att_type") or ()
    terms = terms.split("|") if isinstance(terms, str) else terms
    if config.get("relative_attention") and terms:
        longest, heads = config.get("max_relative_positions"), config.whole("heads")
        longest = config.whole("longest") if longest is None or longest < 1 else longest
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
    """Swin: stages of growing width, each with its own number of heads."""
    field = "num_attention_heads" if config.model_type == "clap_audio_model" else "num_heads"
    stages = zip(config.listed("depths") or (), config.listed(field) or (), strict=True)
    window, layers = config.whole("window_size"), []
    for stage, (count, heads) in enumerate(stages):
        held = Positional(scores=_bias_of_stage(config, stage, heads, window))
        layers += [LayerSetup(f"stage {stage}", held)] * count
    notes = (f"attention within windows of {window} × {window} patches, every other one shifted",)
    if config.values.get("use_absolute_embeddings"):
        notes += ("a learned table of patches besides",)
    return Part(name, config.model_type, tuple(layers), notes=notes)


def _bias_of_stage(
    config: Configuration, stage: int, heads: int, window: int
) -> SwinBias | SwinV2Bias:
    """Swin v2 cuts windows off to the rows of a stage, and knows those that it was trained on.

    Swin2SR, which is of it, has as many patches in all stages, and was trained on none.
    """
    if config.facts["scores"] == "windowed":
        return SwinBias(heads, window, device=META)
    rows, trained = patches_of(config)[0], config.values.get("pretrained_window_sizes") or 0
    if config.model_type == "swin2sr":
        return SwinV2Bias(heads, min(window, rows), device=META)
    trained = trained[stage] if isinstance(trained, list | tuple) else trained
    window = min(window, rows // 2**stage)
    return SwinV2Bias(heads, window, pretrained_window=trained or None, device=META)


# Images -----------------------------------------------------------------------------------------


def image_part(config: Configuration, name: str) -> Part:
    """The encodings of an image model: a table of patches, rotations by two coordinates."""
    name = "vision" if name == "text" else name
    count = config.whole("depth" if config.get("depth") and not config.get("layers") else "layers")
    tokens, notes = _table(config)
    form, scale, rotary = config.facts.get("axial"), None, []
    if form == "":
        usual = "rotates by the two coordinates of a patch, in a form that was not held against it"
        words = config.facts.get("axial_words", usual)
        return Part(name, config.model_type, (LayerSetup(None, None),) * count, notes=(words,))
    if form is not None:
        head = _head(config)
        rotary, scale = [AxialRotary(head, _base(config), form=form)], head**-0.5
        notes = (COORDINATES, *notes)
    layer = LayerSetup(None, Positional(tokens=tokens, queries_keys=rotary), scale)
    return Part(name, config.model_type, (layer,) * count, notes=notes)


def _base(config: Configuration) -> float | None:
    """The base of both axes; None where nothing says."""
    rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
    given = (rope.get("rope_theta"), config.get("rope_theta"), config.facts.get("theta"))
    return next((base for base in given if base is not None), None)


def _head(config: Configuration) -> int:
    if config.get("head_dim"):
        return config.whole("head_dim")
    # Qwen2-VL's files call the width of the language model hidden_size.
    narrow = config.get("embed_dim") and config.model_type == "qwen2_vl_vision"
    return config.whole("embed_dim" if narrow else "hidden_size") // config.whole("heads")


def _table(config: Configuration) -> tuple[list[TokenEncoding], tuple[str, ...]]:
    """A table of patches, and notes."""
    kind, patches = config.model_type, config.facts.get("patches")
    if config.facts.get("table"):
        return [], ("a learned table of patches besides, interpolated to the image",)
    if patches is None:
        return [], tuple(x for x in (config.facts.get("note"),) if x)
    if _heeded(config, "use_absolute_position_embeddings") is False:
        return [], ("without a table of patches, as use_absolute_position_embeddings says",)
    width = config.whole("hidden_size")
    if kind == "aimv2_vision_model" and config.get("is_native"):
        return [AxialSinusoidal(width, "mae")], (COORDINATES,)
    before = patches + bool(_heeded(config, "distilled"))
    table = LearnedGrid(width, patches_of(config), prefix=before, device=META)
    notes = ("interpolated where an image has another number of patches",)
    if kind == "vit_mae":
        notes = ("its rows are sines, as posenc.AxialSinusoidal has them; not trained", *notes)
    if kind == "timesformer" and config.get("attention_type") != "space_only":
        notes = (*notes, "a learned table of frames besides")
    return [table], notes


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
