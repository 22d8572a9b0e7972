"""What vLLM is told by ``--hf-overrides``."""

from typing import Any

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import YaRN
from posenc.interop.configurations import Config, parts_of, read_whole
from posenc.interop.exports.subject import beside_yarns, refuse, rotating_model, share_of
from posenc.interop.fields import Configuration
from posenc.interop.rope_layers import rope_dictionary

KNOWN = frozenset({"default", "linear", "llama3", "yarn"})
"""The rope types that vLLM reads as transformers does, besides LongRoPE."""


def vllm_overrides(config: Config) -> dict[str, Any]:
    """The dictionary for ``vllm serve --hf-overrides``: ``{"rope_parameters": {...}}``.

    Where the model's one part stands in a field (Fuyu's ``text_config``), so does the dictionary.

    Values for which vLLM has other defaults than transformers are spelled out: vLLM multiplies its
    own 0.1·ln s + 1 with ``attn_factor`` and ignores ``attention_factor`` and, in ``yarn``,
    ``mscale``; for LongRoPE it computes the factor from ``max_position_embeddings`` unless both
    ``mscale`` are given. It chooses between LongRoPE's lists once for all requests, by
    ``--max-model-len``; see ``posenc.interop.serving``.

    Reference:
        ``get_rope`` in vllm/model_executor/layers/rotary_embedding.

    Example:
        >>> vllm_overrides({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        ...     "rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}})
        {'rope_parameters': {'rope_type': 'linear', 'rope_theta': 500000.0, 'factor': 2.0}}
    """
    model = rotating_model(config)
    rotary = model.only()
    rope = model.rope_of(rotary)
    model.check_pairing(rotary)
    if rope.kind == "longrope":
        said = _longrope(rotary, rope.values, rope.length("trained_length"))
    else:
        said = _dictionary(rotary)
    return _nested(read_whole(config), {"rope_parameters": said})


def _nested(config: Configuration, said: dict[str, Any]) -> dict[str, Any]:
    """What is said, in the field of the one part, or of what leads to it."""
    for field, inner in parts_of(config).items():
        return {field: _nested(inner, said)}
    return said


def _dictionary(rotary: Rotary) -> dict[str, Any]:
    schedule = rotary.frequencies
    said = rope_dictionary(schedule, rotary.head_dim)
    if said is None or said["rope_type"] not in KNOWN:
        refuse(f"vLLM has no rope type for {schedule!r}")
    share_of(rotary)
    if isinstance(schedule, YaRN):
        for name in ("mscale", "mscale_all_dim", "attention_factor"):
            said.pop(name, None)
        said["attn_factor"] = beside_yarns(schedule)
    return said


def _longrope(rotary: Rotary, given: Any, trained_length: int) -> dict[str, Any]:
    if (given.get("short_mscale") is None) != (given.get("long_mscale") is None):
        refuse("only one of its lists has an mscale")
    factor = rotary.frequencies.attention_factor
    width = rotary.rotated_dim / rotary.head_dim
    return {
        "rope_type": "longrope",
        "rope_theta": float(rotary.frequencies.of.base),  # type: ignore[attr-defined]
        **({} if width == 1 else {"partial_rotary_factor": width}),
        "short_factor": list(given["short_factor"]),
        "long_factor": list(given["long_factor"]),
        "original_max_position_embeddings": trained_length,
        "short_mscale": given.get("short_mscale") or factor,
        "long_mscale": given.get("long_mscale") or factor,
    }
