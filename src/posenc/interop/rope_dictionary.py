"""From a schedule back to the rope dictionary of a Hugging Face configuration."""

from typing import Any

from posenc.frequencies import (
    Geometric,
    Linear,
    Llama3,
    Proportional,
    Schedule,
    YaRN,
)


def rope_dictionary(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    """The ``rope_parameters`` that mean a schedule, or ``None`` where none do.

    It is the inverse of reading them. NTK scaling has no name there, and one list of LongRoPE does
    not tell the other.

    Args:
        schedule: The frequencies.
        head_dim: Width of the head of which they rotate all or a part.

    Example:
        >>> rope_dictionary(Linear(Geometric(64, 500_000.0), 4.0), 64)
        {'rope_theta': 500000.0, 'rope_type': 'linear', 'factor': 4.0}
    """
    if isinstance(schedule, Proportional):
        return {
            "rope_theta": float(schedule.base),
            "rope_type": "proportional",
            "partial_rotary_factor": schedule.fraction,
        }
    plain = schedule if isinstance(schedule, Geometric) else getattr(schedule, "of", None)
    if not isinstance(plain, Geometric):
        return None
    found: dict[str, Any] = {"rope_theta": float(plain.base)}
    if plain.dim != head_dim:
        found["partial_rotary_factor"] = plain.dim / head_dim
    if isinstance(schedule, Geometric):
        return found | {"rope_type": "default"}
    if isinstance(schedule, Linear):
        return found | {"rope_type": "linear", "factor": float(schedule.factor)}
    if isinstance(schedule, Llama3):
        return found | {
            "rope_type": "llama3",
            "factor": float(schedule.factor),
            "low_freq_factor": schedule.low,
            "high_freq_factor": schedule.high,
            "original_max_position_embeddings": schedule.trained_length,
        }
    if isinstance(schedule, YaRN):
        return found | _yarn(schedule)
    return None


def _yarn(schedule: YaRN) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rope_type": "yarn",
        "factor": float(schedule.factor),
        "original_max_position_embeddings": schedule.trained_length,
        "beta_fast": float(schedule.beta_fast),
        "beta_slow": float(schedule.beta_slow),
        "truncate": schedule.truncate,
    }
    optional = {
        "mscale": schedule.mscale,
        "mscale_all_dim": schedule.mscale_all_dim,
        "attention_factor": schedule.attention,
    }
    return found | {name: value for name, value in optional.items() if value is not None}
