"""The exact frequencies as rope types of ``transformers``, under names of our own."""

from collections.abc import Callable
from functools import partial, wraps
from math import tau
from typing import Any

import torch
from torch import Tensor

from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.oracle.encodings import bare
from posenc.interop.rope_layers import OURS
from posenc.interop.rotary_config import rotary_from_config

OF_THEIR_OWN = ("phi3", "phi4_multimodal")
"""Model types whose configuration accepts no other rope type than its own, and must be told."""

TYPES = tuple(each.name for each in ROPE_TYPES.values() if each.in_transformers)


def register() -> tuple[str, ...]:
    """Make ``posenc_default``, ``posenc_yarn`` and the others known to ``transformers``.

    A configuration with ``"rope_type": "posenc_yarn"`` then builds its model with frequencies that
    are computed exactly and rounded to float32 once. Angles are still computed in float32, by the
    model; to have those exact too, use ``patch``. ``posenc_longrope`` takes the long factors where
    ``max_position_embeddings`` exceeds the trained length, and never switches.

    Returns:
        The names. Calling it again changes nothing.

    Example:
        >>> from transformers import LlamaConfig
        >>> from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
        >>> register()[0]
        'posenc_default'
        >>> config = LlamaConfig(hidden_size=64, num_attention_heads=4, rope_parameters={
        ...     "rope_type": "posenc_linear", "factor": 4.0, "rope_theta": 10000.0})
        >>> LlamaRotaryEmbedding(config).inv_freq[0]
        tensor(0.2500)
        >>> unregister()
    """
    from transformers import CONFIG_MAPPING
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for kind in TYPES:
        ROPE_INIT_FUNCTIONS[OURS + kind] = partial(_initialized, kind)
    for name in OF_THEIR_OWN:
        rules = CONFIG_MAPPING[name].__class_validators__  # type: ignore[attr-defined]
        rules[:] = [
            _accepting(each) if each.__name__ == "validate_rope" else each for each in rules
        ]
    return tuple(OURS + kind for kind in TYPES)


def unregister() -> None:
    """Take the names out again."""
    from transformers import CONFIG_MAPPING
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for kind in TYPES:
        ROPE_INIT_FUNCTIONS.pop(OURS + kind, None)
    for name in OF_THEIR_OWN:
        rules = CONFIG_MAPPING[name].__class_validators__  # type: ignore[attr-defined]
        rules[:] = [getattr(each, "before", each) for each in rules]


def _accepting(rule: Callable[[Any], None]) -> Callable[[Any], None]:
    """A rule that reads dictionaries of our types, and leaves others to the one before."""
    before = getattr(rule, "before", rule)

    @wraps(before)
    def validate_rope(config: Any) -> None:
        rope = config.rope_parameters
        ours = isinstance(rope, dict) and str(rope.get("rope_type")).startswith(OURS)
        (rotary_from_config if ours else before)(config)

    validate_rope.before = before  # type: ignore[attr-defined]
    return validate_rope


def _initialized(
    kind: str,
    config: Any,
    device: torch.device | str | None = None,
    seq_len: int | Tensor | None = None,
    layer_type: str | None = None,
    **_: object,
) -> tuple[Tensor, float]:
    """Frequencies and attention factor, as ``transformers`` asks for them."""
    length = config.max_position_embeddings if kind == "longrope" else seq_len
    length = None if length is None else int(length)
    made: Any = rotary_from_config(config, layer_type=layer_type, length=length)
    schedule = bare(made).frequencies
    radians = torch.tensor([tau / each for each in schedule.wavelengths()], dtype=torch.float64)
    return radians.float().to(device), schedule.attention_factor
