"""Which layers of a model are alike, which do not rotate, and which keys they see."""

from dataclasses import replace

from posenc.interop.fields import Configuration

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

ELSEWHERE = (
    "linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp", "short_conv",
    "lightning_attention", "cross_attention", "none",
)  # fmt: skip
"""Layer types without queries and keys to rotate."""

INDICES = {
    "full_attn_idxs": (FULL, "conv"),
    "attn_layer_indices": (FULL, LINEAR),
    "cross_attention_layers": ("cross_attention", FULL),
}
"""Fields that list some layers: the type of these, and that of the others."""

CYCLES = {"block_types": ("attention", SLIDING, "recurrent"), "attn_type_list": (1, FULL, LINEAR)}
"""Fields that list all layers, or a period of them: a value, its type, and that of the others."""

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
"""Fields with the number of keys that a query of a sliding layer sees."""


def layer_types(config: Configuration) -> list[str] | None:
    """The type of each layer; None where all are alike."""
    if (listed := config.listed("layer_types")) is not None:
        types = [str(each) for each in listed]
        return [*types[:-1], FULL] if types and config.facts.get("ends_full") else types
    for name, (inside, outside) in INDICES.items():
        if (given := config.listed(name)) is not None:
            return [inside if i in given else outside for i in range(config.whole("layers"))]
    for name, (value, same, other) in CYCLES.items():
        if given := config.listed(name):
            kinds = [same if each == value else other for each in given]
            return [kinds[i % len(kinds)] for i in range(config.whole("layers"))]
    return _by_rule(config) if "layers" in config.facts else None


def _by_rule(config: Configuration) -> list[str] | None:
    """The types, by where the layers of full attention stand: every so many, and from where.

    ``["last", field, n, other]``: the last of every n layers; ``first``: the first of them;
    ``both``: the last of them, and the first of all; ``end``: counted from the end.
    """
    kind, *rest = config.facts["layers"]
    count = config.whole("layers")
    if kind == "all":
        return [FULL] * count
    if kind == "nope":
        return [rest[0] if rotates else FULL for rotates in _flags(config, count)]
    field, usual, other = rest
    period = config.get(field) or usual
    if field and _has_no_window(config):
        return None
    if isinstance(period, str):  # "LLLG": local, local, local, global, and the last global too
        local = [period[i % len(period)] == "L" and i != count - 1 for i in range(count)]
        return [other if each else FULL for each in local]
    first = {"first": 0, "last": period - 1, "both": period - 1, "end": (count - 1) % period}[kind]
    full = {*range(first, count, period), *([0] if kind == "both" else [])}
    return [FULL if i in full else other for i in range(count)]


def unrotated(config: Configuration, types: list[str] | None, count: int) -> list[bool]:
    """For each layer, whether it has no rotary encoding (NoPE, or no attention)."""
    how = config.facts.get("nope")
    none = [kind in ELSEWHERE for kind in types or [""] * count]
    if how == "not hybrid":  # the other layers are Mamba's
        return [kind != "hybrid" for kind in types or ["hybrid"] * count]
    if (bases := config.listed("layer_rope_theta", count)) is not None:
        return [absent or not base for absent, base in zip(none, bases, strict=True)]
    if how == "end":
        return [(count - 1 - i) % 4 == 0 for i in range(count)]
    if how == "flags":
        return [not each for each in _flags(config, count)]
    if how == FULL and types and not _has_no_window(config):
        return [
            kind != SLIDING and not dense
            for kind, dense in zip(types, _dense(config, count), strict=True)
        ]
    return none


def _flags(config: Configuration, count: int) -> list[bool]:
    """For each layer whether it rotates, of models that say so layer by layer."""
    period = config.get("no_rope_layer_interval") or 4
    flags = config.listed("no_rope_layers", count if config.get("no_rope_layers") else None)
    return [bool(each) for each in flags or [(i + 1) % period for i in range(count)]]


def _dense(config: Configuration, count: int) -> list[bool]:
    """For each layer, whether it is one of Command's that are dense and always rotate."""
    if config.get("prefix_dense_sliding_window_pattern") != 1:
        return [False] * count
    if (kinds := config.listed("mlp_layer_types", count)) is not None:
        return [kind == "dense" for kind in kinds]
    return [index < (config.get("first_k_dense_replace") or 0) for index in range(count)]


def _has_no_window(config: Configuration) -> bool:
    """Whether a null window makes all layers full and rotating, in models that look at it so."""
    null = "sliding_window" in config.values and config.get("sliding_window") is None
    return null and "nope_windowed" in config.facts


# Windows ----------------------------------------------------------------------------------------


def window_of(config: Configuration, index: int, kind: str | None) -> int | None:
    """A query of layer ``index`` sees keys at distances below this; None for all of them.

    ``window`` of the facts says which layers slide where a window is given (``everywhere``, or
    ``some``: those that fields name), and then the fields; ``name+1`` counts the keys beside the
    query's own.
    """
    if config.get("local_attention"):  # ModernBERT's: all that is seen, to both sides
        reach = config.get("sliding_window") or config.whole("local_attention") // 2
        both = config.family == "modernbert"
        return reach + both if kind == SLIDING else None
    for layer, own in config.dictionary("per_layer_config").items():
        if int(layer) == index and "sliding_window" in own:
            config = replace(config, values={**config.values, **own})
    how, *fields = config.facts.get("window", ("some", *WINDOWS)) or ("some",)
    beside = {name.removesuffix("+1"): int(name.endswith("+1")) for name in fields}
    field = config.field(*beside)
    if field is None or "window_words" in config.facts or not _slides(config, index, kind, how):
        return None
    size = config.whole(field) + beside[field]
    if config.facts.get("halved") and config.get("use_bidirectional_attention"):
        return size // 2 + 1  # EmbeddingGemma's, of which half lies to either side
    return size


def unverified(config: Configuration) -> str | None:
    """What to say of windows that no model of the class was held against; None where one was."""
    field = config.field(*WINDOWS)
    if "window" in config.facts or field is None:
        return None
    usual = f"which layers slide by {field} was not held against a running model of this type"
    return config.facts.get("window_words", usual)


def _slides(config: Configuration, index: int, kind: str | None, how: str) -> bool:
    """Whether a layer does where a window is given: by its type, or by where it stands."""
    facts, last = config.facts, config.get("max_window_layers")
    if "switch" in facts and not config.get(facts["switch"]):
        return False
    if how == "everywhere":
        return kind != LINEAR
    if config.get("layer_types") is not None or kind is not None:
        return kind is not None and "sliding" in kind
    if "first_sliding" in facts:
        return index >= (facts["first_sliding"] if last is None else last)
    if config.family == "qwen2_moe":
        return index % 2 == 0 and index < (28 if last is None else last)
    switched = config.family == "smollm3" and config.get("use_sliding_window")
    return bool(switched) and unrotated(config, None, config.whole("layers"))[index]
