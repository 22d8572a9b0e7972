"""Random rope dictionaries, in the old spelling and the new, for types that read them."""

import random
from typing import Any

from transformers import PreTrainedConfig


def fields(config: PreTrainedConfig, seed: str) -> dict[str, Any] | None:
    """A random change of a configuration's rotation; None where its dictionary is of its own."""
    rope = getattr(config, "rope_parameters", None)
    if not isinstance(rope, dict) or any(isinstance(each, dict) for each in rope.values()):
        return None
    if rope.get("rope_type") not in ("default", "yarn", "linear", "llama3"):
        return None
    draw = random.Random(seed)
    kept = {k: rope[k] for k in ("mrope_section", "partial_rotary_factor") if k in rope}
    if rope["rope_type"] != "default":
        kept |= {k: v for k, v in rope.items() if k.startswith("llama_4")}
    base = draw.choice([1e4, 5e5, round(draw.uniform(100, 1e6), 2)])
    kind = draw.choice(["linear", "yarn", "llama3"])
    found: dict[str, Any] = {"rope_type": kind, "factor": draw.choice([2.0, 3.5, 8.0])}
    if kind == "yarn":
        found |= {"original_max_position_embeddings": draw.choice([64, 256])}
        if draw.random() < 0.5:
            found |= {"mscale": 1.0, "mscale_all_dim": draw.choice([0.8, 1.0])}
        if draw.random() < 0.3:
            found |= {"truncate": False}
    elif kind == "llama3":
        found |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": draw.choice([64, 256])}  # fmt: skip
    return {"rope_parameters": {**kept, **found, "rope_theta": base}}
