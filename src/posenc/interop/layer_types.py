"""Which layers of a model are alike, which do not rotate, and which keys they see."""

from collections.abc import Mapping
from dataclasses import replace

from posenc.interop.fields import Configuration

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

ELSEWHERE = (
    "linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp", "short_conv",
    "lightning_attention", "cross_attention", "none",
)  # fmt: skip
"""Layer types without queries and keys to rotate."""

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
"""Fields with the number of keys that a query of a sliding layer sees."""


def layer_types(config: Configuration) -> list[str] | None:
    """The type of each layer; None where all are alike.

    ``listing`` of the facts has other fields that say so: the types of the layers that one lists
    and of those that it does not, or what each entry of a period means.
    """
    if (listed := config.listed("layer_types")) is not None:
        types = [str(each) for each in listed]
        return [*types[:-1], FULL] if types and config.facts.get("ends_full") else types
    for name, meant in config.facts.get("listing", {}).items():
        if (given := config.listed(name)) is not None:
            layers = range(config.whole("layers"))
            if isinstance(meant, Mapping):
                return [meant[str(given[i % len(given)])] for i in layers]
            return [meant[i not in given] for i in layers]
    return _by_rule(config) if "layers" in config.facts else None


def _by_rule(config: Configuration) -> list[str] | None:
    """The types, by where the layers of full attention stand: one of every ``period``.

    It is the ``last`` of them, the ``first``, or the last counted from the ``end`` of the model.
    """
    where, field, period, other = config.facts["layers"]
    count = config.whole("layers")
    if where == "nope":
        return [other if rotates else FULL for rotates in _flags(config, count)]
    if field and _has_no_window(config):
        return None
    period = config.get(field) or period
    if isinstance(period, str):  # "LLLG": local, local, local, global, and the last global too
        local = [period[i % len(period)] == "L" and i != count - 1 for i in range(count)]
        return [other if each else FULL for each in local]
    first = {"first": 0, "last": period - 1, "end": (count - 1) % period}[where]
    return [FULL if i % period == first else other for i in range(count)]


def unrotated(config: Configuration, types: list[str] | None, count: int) -> list[bool]:
    """For each layer, whether it has no rotary encoding (NoPE, or no attention)."""
    how, none = config.facts.get("nope"), [kind in ELSEWHERE for kind in types or [""] * count]
    if (bases := config.listed("layer_rope_theta", count)) is not None:
        return [absent or not base for absent, base in zip(none, bases, strict=True)]
    if how == "end":
        return [(count - 1 - i) % 4 == 0 for i in range(count)]
    if how == "flags":
        return [not each for each in _flags(config, count)]
    if how != FULL or types is None or _has_no_window(config):
        return none
    dense = [False] * count
    if config.get("prefix_dense_sliding_window_pattern") == 1:  # Command's dense layers rotate
        dense = [kind == "dense" for kind in config.listed("mlp_layer_types", count) or dense]
    return [kind != SLIDING and not each for kind, each in zip(types, dense, strict=True)]


def _flags(config: Configuration, count: int) -> list[bool]:
    """For each layer whether it rotates, of models that say so layer by layer."""
    period = config.get("no_rope_layer_interval") or 4
    flags = config.listed("no_rope_layers", count if config.get("no_rope_layers") else None)
    return [bool(each) for each in flags or [(i + 1) % period for i in range(count)]]


def _has_no_window(config: Configuration) -> bool:
    """Whether a null window makes all layers full and rotating, in models that look at it so."""
    null = config.values.get("sliding_window", 0) is None
    return null and "nope_windowed" in config.facts


# Windows ----------------------------------------------------------------------------------------


def of_layer(config: Configuration, index: int) -> Configuration:
    """The configuration with what ``per_layer_config`` says of one layer."""
    each = config.dictionary("per_layer_config")
    own = next((fields for layer, fields in each.items() if int(layer) == index), {})
    return replace(config, values={**config.values, **own})


def window_of(config: Configuration, index: int, kind: str | None) -> int | None:
    """A query of layer ``index`` sees keys at distances below this; None for all of them.

    ``window`` of the facts says which layers slide where a window is given (``everywhere``, or
    ``some``: those that fields name), and then the fields; ``name+1`` counts the keys beside the
    query's own.
    """
    config = of_layer(config, index)
    how, *fields = config.facts.get("window", ("some", *WINDOWS)) or ("some",)
    beside = {name.removesuffix("+1"): int(name.endswith("+1")) for name in fields}
    field = config.field(*beside)
    if field is None and fields and config.get("local_attention"):  # ModernBERT's, of both sides
        size = config.whole("local_attention") // 2 + beside[WINDOWS[0]]
        return size if kind == SLIDING else None
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
    """Whether a layer does where a window is given: by its type, or by where it stands.

    ``slides`` of the facts: layers from ``max_window_layers`` on, even ones below it, or NoPE's.
    """
    facts, last = config.facts, config.get("max_window_layers")
    if "switch" in facts and not config.get(facts["switch"]):
        return False
    if how == "everywhere":
        return kind != LINEAR
    if kind is not None or "slides" not in facts:
        return kind is not None and "sliding" in kind
    if facts["slides"] == "nope":
        return unrotated(config, None, config.whole("layers"))[index]
    return index >= last if facts["slides"] == "late" else index % 2 == 0 and index < last
