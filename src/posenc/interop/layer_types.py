"""Which layers of a model are alike, which do not rotate, and which keys they see."""

from collections.abc import Sequence
from dataclasses import replace

from posenc.interop.fields import Configuration

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

ELSEWHERE = (
    "linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp", "short_conv",
    "lightning_attention", "cross_attention", "none",
)  # fmt: skip
"""Layer types without queries and keys to rotate."""

LISTED = {"full_attn_idxs": "conv", "attn_layer_indices": LINEAR}
"""Fields that list the layers with attention, and what the others have."""

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
"""Fields with the number of keys that a query of a sliding layer sees."""


def layer_types(config: Configuration) -> list[str] | None:
    """The type of each layer; None where all are alike."""
    if (listed := config.listed("layer_types")) is not None:
        types = [str(each) for each in listed]
        return [*types[:-1], FULL] if types and config.facts.get("ends_full") else types
    if (types := _by_lists(config)) is not None:
        return types
    return _by_rule(config) if "layers" in config.facts else None


def _by_lists(config: Configuration) -> list[str] | None:
    """The types, where another field lists them or the layers of one."""
    if blocks := config.listed("block_types"):  # Griffin's, repeated until all layers have one
        kinds = [SLIDING if each == "attention" else "recurrent" for each in blocks]
        return [kinds[i % len(kinds)] for i in range(config.whole("layers"))]
    if (kinds := config.listed("attn_type_list")) is not None:  # MiniMax's
        return [FULL if kind else LINEAR for kind in kinds]
    for name, elsewhere in LISTED.items():
        if (full := config.listed(name)) is not None:
            return [FULL if i in full else elsewhere for i in range(config.whole("layers"))]
    if (crossed := config.listed("cross_attention_layers")) is not None:  # Llama 3.2's
        return ["cross_attention" if i in crossed else FULL for i in range(config.whole("layers"))]
    return None


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
    if config.facts.get("nope_windowed") and _windowless(config) and field:
        return None
    if isinstance(period, str):  # "LLLG": local, local, local, global, and the last global too
        local = [period[i % len(period)] == "L" and i != count - 1 for i in range(count)]
    else:
        full = {
            "last": lambda i: (i + 1) % period == 0,
            "first": lambda i: i % period == 0,
            "both": lambda i: i == 0 or (i + 1) % period == 0,
            "end": lambda i: (count - 1 - i) % period == 0,
        }[kind]
        local = [not full(i) for i in range(count)]
    return [other if each else FULL for each in local]


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
    if how == FULL and types and not (config.facts.get("nope_windowed") and _windowless(config)):
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


def _windowless(config: Configuration) -> bool:
    return "sliding_window" in config.values and config.get("sliding_window") is None


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
    beside = {name.removesuffix("+1"): int(name.endswith("+1")) for name in _rule(config)[1:]}
    field = config.field(*beside)
    if not _slides(config, index, kind, field) or "window_words" in config.facts:
        return None
    size = config.whole(str(field)) + beside[str(field)]
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


def _rule(config: Configuration) -> Sequence[str]:
    return config.facts.get("window", ("some", *WINDOWS))


def _slides(config: Configuration, index: int, kind: str | None, field: str | None) -> bool:
    facts = config.facts
    off = "switch" in facts and not config.get(facts["switch"])
    if (
        facts.get("switch")
        and config.family == "qwen2_moe"
        and kind == SLIDING
        and (off or field is None)
    ):
        raise ValueError("layer_types names sliding layers, and no sliding_window is used.")
    if off or field is None:
        return False
    if _rule(config)[0] == "everywhere":
        return kind != LINEAR
    if config.get("layer_types") is not None or kind is not None:
        return kind is not None and "sliding" in kind
    last = config.get("max_window_layers")
    if "first_sliding" in facts:
        return index >= (facts["first_sliding"] if last is None else last)
    if config.family == "qwen2_moe":
        return index % 2 == 0 and index < (28 if last is None else last)
    switched = config.family == "smollm3" and config.get("use_sliding_window")
    return bool(switched) and unrotated(config, None, config.whole("layers"))[index]
