"""Models that add something to their tokens, or to their scores: from fields to encodings."""

from collections.abc import Iterable
from dataclasses import replace

from posenc.encodings.base import ScoreEncoding, TokenEncoding
from posenc.encodings.positional import Positional
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.scores.deberta import DeBERTa
from posenc.encodings.scores.swin import SwinBias
from posenc.encodings.scores.swin_v2 import SwinV2Bias
from posenc.encodings.scores.t5 import T5Bias
from posenc.encodings.tokens.learned import Learned
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.interop import schemes
from posenc.interop.configurations import Configuration, finite
from posenc.interop.image_setup import patches_of
from posenc.interop.rope_widths import width_of_head
from posenc.interop.schemes import LearnedRows, SineRows
from posenc.interop.setup import LayerSetup, Part

META = "meta"
"""Where tables are made: what is read has widths, and no weights."""


def token_parts(config: Configuration, name: str) -> list[Part] | None:
    """Models that add learned vectors or sinusoids to their tokens; None of other models."""
    kind = config.model_type
    if kind in schemes.BOTH:
        return _stacks(config, *schemes.BOTH[kind])
    rows = schemes.LEARNED.get(kind) or schemes.SINES.get(kind)
    if rows is None or (config.values.get("sinusoidal_embeddings") and kind == "xlm"):
        return None
    if kind == "esm" and config.values.get("position_embedding_type") != "absolute":
        return None
    if kind in schemes.DEBERTA and isinstance(rows, LearnedRows):
        return [_deberta(config, name, rows)]
    field, sines = schemes.UNLEARNED.get(kind, ("", rows))
    tokens = _tokens(config, sines if config.get(field) is False else rows)
    scores = [_mpnet(config)] if kind == "mpnet" else []
    count = config.whole("l_layers" if kind == "lxmert" else "layers")
    part = _part(config, name, count, tokens, scores, trained=_length(tokens), notes=_notes(config))
    return [_local(config, part) if kind == "gpt_neo" else part]


def _local(config: Configuration, part: Part) -> Part:
    """GPT-Neo's layers, some of which see the last ``window_size`` keys alone."""
    given = config.values.get("attention_types") or [[["global", "local"], 12]]
    try:
        kinds = [kind for several, times in given for kind in list(several) * times]
    except (TypeError, ValueError):
        kinds = []
    if len(kinds) != len(part.layers) or not set(kinds) <= {"global", "local"}:
        raise ValueError(
            f"attention_types is {given!r}; it must say for each of {len(part.layers)} layers "
            f"whether it is global or local, as [[['global', 'local'], 12]]. Correct the file."
        )
    size = config.whole("window_size")
    layers = tuple(
        replace(layer, layer_type=kind, window=size if kind == "local" else None)
        for kind, layer in zip(kinds, part.layers, strict=True)
    )
    return replace(part, layers=layers)


def _notes(config: Configuration) -> tuple[str, ...]:
    """What there is to say; ``position_embedding_type`` may be for code of the file's own."""
    kind = config.model_type
    silent = kind == "tapas" and not config.values.get("reset_position_index_per_cell")
    said = [schemes.NOTES[kind]] if kind in schemes.NOTES and not silent else []
    if (named := config.values.get("position_embedding_type", "absolute")) != "absolute":
        said.append(
            f"position_embedding_type is {named!r} in the file, and the model of transformers "
            f"does not look at it"
        )
    return tuple(said)


def _mpnet(config: Configuration) -> T5Bias:
    """MPNet has T5's buckets beside its learned vectors, one table for all layers."""
    buckets = config.whole("relative_attention_num_buckets")
    return T5Bias(config.whole("heads"), buckets, 128, device=META)


def _stacks(
    config: Configuration, before: LearnedRows | SineRows, after: LearnedRows | SineRows
) -> list[Part]:
    encoder, decoder = _tokens(config, before), _tokens(config, after)
    above, below = _depths(config)
    said = schemes.DECODER_NOTES.get(config.model_type)
    beside = () if said is None else (said,)
    return [
        _part(config, "encoder", above, encoder, trained=_length(encoder), notes=_notes(config)),
        _part(config, "decoder", below, decoder, trained=_length(decoder), notes=beside),
        _part(config, "cross-attention", below),
    ]


def _depths(config: Configuration) -> tuple[int, int]:
    encoder = next((n for n in ("encoder_layers", "num_encoder_layers") if config.get(n)), "layers")
    decoder = next((n for n in ("decoder_layers", "num_decoder_layers") if config.get(n)), "layers")
    return config.whole(encoder), config.whole(decoder)


def _tokens(config: Configuration, rows: LearnedRows | SineRows) -> TokenEncoding:
    width = config.whole(rows.width)
    first = _first(config, rows.first)
    if isinstance(rows, SineRows):
        return Sinusoidal(width, convention=rows.convention, offset=first)
    held = config.whole(rows.length) + rows.beyond
    if held <= first:
        raise ValueError(
            f"The table of {config.model_type} has {held} rows, and the first position is the row "
            f"{first}. Correct {rows.length} or pad_token_id."
        )
    return Learned(width, held - first, offset=first, device=META)


def _first(config: Configuration, first: int | str) -> int:
    if isinstance(first, int):
        return first
    if first == "context_length":
        return _after_context(config)
    padding = config.values.get(first)
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise ValueError(
            f"{first} is {padding!r}; {config.model_type} counts positions from the row after it, "
            f"so it must be a whole number. Correct the file."
        )
    return padding + 1


def _after_context(config: Configuration) -> int:
    """Where the decoder of a forecasting model counts on; Autoformer's sees labels once more."""
    length = "context_length" if config.get("context_length") else "prediction_length"
    again = config.values.get("label_length", 0) if config.model_type == "autoformer" else 0
    start = config.whole(length) - again
    if start < 0:
        raise ValueError(
            f"label_length is {again} and {length} {config.whole(length)}; labels are the last "
            f"values of the context, so they cannot be more. Correct the file."
        )
    return start


def _length(tokens: TokenEncoding) -> int | None:
    return tokens.max_len if isinstance(tokens, Learned) else None


def _part(
    config: Configuration,
    name: str,
    count: int,
    tokens: TokenEncoding | None = None,
    scores: Iterable[ScoreEncoding] = (),
    *,
    scale: float | None = None,
    trained: int | None = None,
    notes: tuple[str, ...] = (),
) -> Part:
    held = Positional(tokens=[] if tokens is None else [tokens], scores=list(scores))
    layers = (LayerSetup(None, held, scale),) * count
    return Part(name, config.model_type, layers, trained, notes=notes)


def _deberta(config: Configuration, name: str, rows: LearnedRows) -> Part:
    biased = config.values.get("position_biased_input", True)
    tokens = _tokens(config, rows) if biased else None
    scores = []
    terms = config.values.get("pos_att_type") or ()
    terms = terms.split("|") if isinstance(terms, str) else terms
    if config.get("relative_attention") and terms:
        longest = config.get("max_relative_positions")
        longest = config.whole("longest") if longest is None or longest < 1 else longest
        buckets = config.get("position_buckets") if config.model_type == "deberta-v2" else None
        head = config.whole("hidden_size") // config.whole("heads")
        scores.append(
            DeBERTa(
                config.whole("heads"), head,
                buckets=buckets if buckets and buckets > 0 else longest,
                max_distance=longest,
                terms=tuple(terms),  # type: ignore[arg-type]
                device=META,
            )
        )  # fmt: skip
    notes = ()
    if config.model_type == "deberta" and config.get("position_buckets") not in (None, -1):
        notes = ("position_buckets stands in the file, and the model does not look at it",)
    count, trained = config.whole("layers"), config.get("longest")
    return _part(config, name, count, tokens, scores, trained=trained, notes=notes)


def score_parts(config: Configuration, name: str) -> list[Part] | None:
    """Models that add a bias to their scores and nothing to their tokens; None of other models."""
    kind = config.model_type
    if kind in schemes.BUCKETS:
        return _buckets(config)
    if kind in schemes.SLOPES or (kind == "falcon" and config.get("alibi")):
        return [_slopes(config, name)]
    if kind in schemes.WINDOWED + schemes.WINDOWED_2:
        return [_windowed(config, name)]
    return None


def _buckets(config: Configuration) -> list[Part]:
    count, far = config.whole("relative_attention_num_buckets"), config.whole(
        "relative_attention_max_distance"
    )  # fmt: skip
    heads = config.whole("heads")
    above, below = _depths(config)
    both, back = (T5Bias(heads, count, far, each, device=META) for each in (True, False))
    note = ("one table for all layers",) if config.model_type != "umt5" else ("a table a layer",)
    scale = 1.0
    return [
        _part(config, "encoder", above, scores=[both], scale=scale, notes=note),
        _part(config, "decoder", below, scores=[back], scale=scale, notes=note),
        _part(config, "cross-attention", below, scale=scale),
    ]


def _slopes(config: Configuration, name: str) -> Part:
    heads = config.whole("heads")
    attention = config.dictionary("attn_config")
    steepest = attention.get("alibi_bias_max", 8) if config.model_type == "mpt" else 8
    if config.model_type == "mpt" and attention.get("alibi") is False:
        instead = "rotates queries and keys" if attention.get("rope") else "learned positions"
        raise ValueError(
            f"attn_config of this MPT says alibi: false; transformers adds it all the same, and "
            f"the authors' code {instead} instead. Correct the file."
        )
    slopes = ALiBi(heads, alibi_bias_max=float(finite("alibi_bias_max", steepest)))
    scale = width_of_head(config) ** -0.5
    notes = ()
    if steepest != 8:
        notes = (
            f"slopes are those of the authors' code, by alibi_bias_max {steepest}; transformers "
            f"does not look at it, and takes 8",
        )
    if config.model_type == "mpt" and attention.get("softmax_scale") is not None:
        scale = finite("softmax_scale", attention["softmax_scale"])
    if config.model_type == "falcon":  # it scales biases with the products
        slopes = ALiBi(heads, slopes=[m * scale for m in slopes.slopes])
        notes = ("the model rounds slopes to bfloat16, and scales biases as it does products",)
    return _part(config, name, config.whole("layers"), scores=[slopes], scale=scale, notes=notes)


def _biases(layers: Iterable[LayerSetup]) -> list[SwinBias | SwinV2Bias]:
    return [layer.positional.scores[0] for layer in layers if layer.positional]  # type: ignore[misc]


def _bias_of_stage(
    config: Configuration, index: int, heads: int, window: int
) -> SwinBias | SwinV2Bias:
    """Swin v2 cuts windows off to the rows of a stage, and knows those that it was trained on.

    Its windows are squares, of images that are higher than wide or wider than high too. Swin2SR,
    which is of it, has as many patches in all stages, and was trained on none.
    """
    if config.model_type not in schemes.WINDOWED_2:
        return SwinBias(heads, window, device=META)
    rows = patches_of(config)[0]
    if config.model_type == "swin2sr":
        return SwinV2Bias(heads, min(window, rows), device=META)
    window = min(window, rows // 2**index)
    trained = config.values.get("pretrained_window_sizes") or 0
    if isinstance(trained, list | tuple):
        if len(trained) <= index:
            raise ValueError(
                f"pretrained_window_sizes is {trained!r}; it must have one number a stage, and "
                f"there is a stage {index}. Correct the file."
            )
        trained = trained[index]
    if isinstance(trained, bool) or not isinstance(trained, int) or trained < 0:
        raise ValueError(f"pretrained_window_sizes has {trained!r}; whole numbers are needed.")
    return SwinV2Bias(heads, window, pretrained_window=trained or None, device=META)


def _windowed(config: Configuration, name: str) -> Part:
    """Swin: stages of growing width, each with its own number of heads."""
    named = "num_attention_heads" if config.model_type == "clap_audio_model" else "num_heads"
    depths, heads = config.values.get("depths"), config.values.get(named)
    window = config.values.get("window_size")
    if not isinstance(depths, list | tuple) or not isinstance(heads, list | tuple):
        raise ValueError(
            f"depths is {depths!r} and {named} {heads!r}; give lists, with one number a stage."
        )
    if len(depths) != len(heads) or not isinstance(window, int):
        raise ValueError(
            f"depths is {depths!r}, {named} {heads!r} and window_size {window!r}. Give as many "
            f"depths as numbers of heads, and a whole number."
        )
    layers: list[LayerSetup] = []
    for index, (count, number) in enumerate(zip(depths, heads, strict=True)):
        bias = _bias_of_stage(config, index, number, window)
        layers += [LayerSetup(f"stage {index}", Positional(scores=bias), window=None)] * count
    notes = (f"attention within windows of {window} × {window} patches, every other one shifted",)
    if any(bias.window != (window, window) for bias in _biases(layers)):
        notes += ("windows of stages with fewer rows than that have as many rows and columns",)
    if config.values.get("use_absolute_embeddings"):
        notes += ("a learned table of patches besides",)
    return Part(name, config.model_type, tuple(layers), notes=notes)
