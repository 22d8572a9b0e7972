"""How many of the last keys a query of a layer sees, as the class of its model hides the others."""

from posenc.interop.configurations import Configuration
from posenc.interop.layer_types import unrotated
from posenc.interop.rope_models import named

WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
"""Fields with the number of keys that a query of a sliding layer sees."""

EVERYWHERE = named(
    "doge minimax ministral3 mistral mixtral phi3 phi4_multimodal phimoe qwen3_moe starcoder2"
)
"""Families all of whose attention slides where a window is given, whatever types layers have."""

DEAF = named(
    "arcee ernie4_5 gemma glm glm4 glm4_moe granite granitemoe helium hunyuan_v1_dense "
    "hunyuan_v1_moe hy_v3 llama minimax_m2 nemotron olmo olmo2 olmoe seed_oss solar_open stablelm"
)
"""Families that let every layer see everything, whatever window and types a file names."""

SWITCHED = named("qwen2 qwen2_5_omni qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_moe")
"""Families without a window where ``use_sliding_window`` is not true."""

FIRST = {"qwen2": 28, "qwen2_5_omni": 28, "qwen2_5_vl": 80, "qwen2_vl": 80, "qwen3": 28,
         "dots1": 62}  # fmt: skip
"""From which layer on they slide without types of layers: ``max_window_layers``, or this."""


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
    size = config.get(*WINDOWS)
    if size is None or config.family in DEAF or not _slides(config, index, kind):
        return None
    if config.family == "mimo_v2_flash" and config.get("sliding_window_size") is not None:
        return config.whole("sliding_window_size") + 1  # the keys before, and the query's own
    return config.whole(str(config.field(*WINDOWS)))


def _slides(config: Configuration, index: int, kind: str | None) -> bool:
    family = config.family
    if family in SWITCHED and not config.get("use_sliding_window"):
        if family == "qwen2_moe" and kind == "sliding_attention":
            raise ValueError(
                "layer_types names sliding layers, and use_sliding_window is not true: the class "
                "of qwen2_moe then hides all keys from them. Correct one."
            )
        return False
    if family in EVERYWHERE:
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
