"""The exact frequencies as rope types of ``transformers``, under names of our own."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.rope_types import OURS
from posenc.interop.rotary_config import rotary_from_config

PREFIX = OURS
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
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for kind in TYPES:
        ROPE_INIT_FUNCTIONS[PREFIX + kind] = _initializer(kind)
    for validators, index in _rules():
        if not hasattr(validators[index], "before"):
            validators[index] = _accepting(validators[index])
    return tuple(PREFIX + kind for kind in TYPES)


def unregister() -> None:
    """Take the names out again."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for kind in TYPES:
        ROPE_INIT_FUNCTIONS.pop(PREFIX + kind, None)
    for validators, index in _rules():
        validators[index] = getattr(validators[index], "before", validators[index])


def _rules() -> Iterator[tuple[list[Callable[[Any], None]], int]]:
    """Where the configurations that accept few types keep the rule that says so."""
    from transformers import CONFIG_MAPPING

    for name in OF_THEIR_OWN:
        validators = CONFIG_MAPPING[name].__class_validators__  # type: ignore[attr-defined]
        for index, validator in enumerate(validators):
            if validator.__name__ == "validate_rope":
                yield validators, index


def _accepting(before: Callable[[Any], None]) -> Callable[[Any], None]:
    """A rule that reads dictionaries of our types, and leaves others to the one before."""

    @wraps(before)
    def validate_rope(config: Any) -> None:
        rope = config.rope_parameters
        named = rope.get("rope_type") if isinstance(rope, dict) else None
        if isinstance(named, str) and named.startswith(PREFIX):
            rotary_from_config({**config.to_dict(), "rope_parameters": _renamed(rope)})
        else:
            before(config)

    validate_rope.before = before  # type: ignore[attr-defined]
    return validate_rope


def _initializer(kind: str) -> Callable[..., tuple[Tensor, float]]:
    def initialize(
        config: Any,
        device: torch.device | str | None = None,
        seq_len: int | Tensor | None = None,
        layer_type: str | None = None,
        **_: object,
    ) -> tuple[Tensor, float]:
        values = config.to_dict()
        values["rope_parameters"] = _renamed(values["rope_parameters"])
        length = config.max_position_embeddings if kind == "longrope" else seq_len
        rotary = rotary_from_config(
            values, layer_type=layer_type, length=None if length is None else int(length)
        )
        rotary = rotary.rotary if isinstance(rotary, MultimodalRotary) else rotary
        assert isinstance(rotary, Rotary)
        schedule = rotary.frequencies
        per_turn = [0.0 if turns == 0 else turns / 2**192 for turns in schedule.turns()]
        frequencies = 2 * torch.pi * torch.tensor(per_turn, dtype=torch.float64)
        return frequencies.float().to(device), schedule.attention_factor

    return initialize


def _renamed(parameters: dict[str, Any]) -> dict[str, Any]:
    """The dictionary, nested or not, with the names that reading knows."""
    found = {}
    for key, value in parameters.items():
        if isinstance(value, dict):
            found[key] = _renamed(value)
        else:
            named = key in ("rope_type", "type") and isinstance(value, str)
            found[key] = value.removeprefix(PREFIX) if named else value
    return found
