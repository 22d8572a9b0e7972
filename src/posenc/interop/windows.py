"""How many of the last keys a query of a layer sees, as the class of its model hides the others.

Which layers slide, and which fields a class looks at for their window, was measured of models that
run: ``windows.txt`` is written by ``python -m tests.oracle_models.windows``.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from posenc.interop.configurations import Configuration
from posenc.interop.layer_types import unrotated
from posenc.interop.rope_models import named

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
"""Fields with the number of keys that a query of a sliding layer sees."""

NOWHERE, EVERYWHERE, SOME = "nowhere", "everywhere", "some"
"""Which layers slide where a window is given: none, all that attend, or those that fields name."""

SWITCHED = named("qwen2 qwen2_5_omni qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_moe")
"""Families without a window where ``use_sliding_window`` is not true."""

FIRST = {"qwen2": 28, "qwen2_5_omni": 28, "qwen2_5_vl": 80, "qwen2_vl": 80, "qwen3": 28,
         "dots1": 62}  # fmt: skip
"""From which layer on they slide without types of layers: ``max_window_layers``, or this."""

IN_WORDS = {
    "neomme": "every other sliding layer has a window of its own (per_layer_config), which is not "
    "read here; the first and those between see keys up to sliding_window positions to either side",
    "t5gemma2_text": "a query of a sliding layer sees (sliding_window + 1) // 2 keys up to its own "
    "and sliding_window // 2 after it",
}
"""Model types whose windows are not the same number of keys to either side, or of all layers."""


@cache
def measured() -> Mapping[str, tuple[str, ...]]:
    """By model type: which layers slide, then the fields that its class looks at.

    Example:
        >>> measured()["llama"], measured()["mistral"]
        (('nowhere',), ('everywhere', 'sliding_window'))
    """
    text = files("posenc.interop").joinpath("windows.txt").read_text(encoding="utf-8")
    return {name: tuple(rest) for name, *rest in map(str.split, text.splitlines())}


def window_of(config: Configuration, index: int, kind: str | None) -> int | None:
    """The keys that a query of layer ``index`` sees; None for all, or where words say it.

    Raises:
        ValueError: The model would see nothing.

    Example:
        >>> window_of(Configuration({"sliding_window": 3}, "mistral"), 0, "full_attention")
        3
    """
    if config.get("local_attention"):  # ModernBERT's reach to both sides, told in words
        return None
    beside = _fields(config)
    field = config.field(*beside)
    slides = _slides(config, index, kind, is_given=field is not None)
    if field is None or not slides or config.model_type in IN_WORDS:
        return None
    size = config.whole(field) + beside[field]
    if config.family == "gemma3" and config.get("use_bidirectional_attention"):
        return size // 2 + 1  # EmbeddingGemma's, of which half lies to either side
    return size


def unverified(config: Configuration) -> str | None:
    """What to say of windows that no model of the class was held against; None where one was.

    Example:
        >>> unverified(Configuration({"sliding_window": 3}, "ours"))
        'which layers slide by sliding_window was not held against a running model of this type'
    """
    field = config.field(*WINDOWS)
    if config.model_type in measured() or field is None:
        return None
    if config.model_type in IN_WORDS:
        return IN_WORDS[config.model_type]
    return f"which layers slide by {field} was not held against a running model of this type"


def _fields(config: Configuration) -> dict[str, int]:
    """Those that its class looks at, and the keys beside; of a model not measured, all."""
    names = measured().get(config.model_type, (SOME, *WINDOWS))[1:]
    return {name.removesuffix("+1"): int(name.endswith("+1")) for name in names}


def _slides(config: Configuration, index: int, kind: str | None, *, is_given: bool) -> bool:
    family = config.family
    off = family in SWITCHED and not config.get("use_sliding_window")
    if family == "qwen2_moe" and kind == "sliding_attention" and (off or not is_given):
        raise ValueError(
            "layer_types names sliding layers, and use_sliding_window is not true or there is no "
            "sliding_window: the class of qwen2_moe then hides all keys from them. Correct one."
        )
    if off or not is_given:
        return False
    if measured().get(config.model_type, (SOME,))[0] == EVERYWHERE:
        return kind != "linear_attention"
    if config.get("layer_types") is not None or kind is not None:
        return kind is not None and "sliding" in kind
    last = config.get("max_window_layers")
    if family in FIRST:
        return index >= (FIRST[family] if last is None else last)
    if family == "qwen2_moe":
        return index % 2 == 0 and index < (28 if last is None else last)
    switched = family == "smollm3" and config.get("use_sliding_window")
    return bool(switched) and unrotated(config, None, config.whole("layers"))[index]
