"""From a schedule back to the rope dictionary of a Hugging Face configuration."""

from typing import Any

from posenc.arguments import check_whole
from posenc.frequencies import Schedule
from posenc.frequencies.registry import ROPE_TYPES


def rope_dictionary(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    """The ``rope_parameters`` that mean a schedule, or ``None`` where none do.

    It is the inverse of reading them. NTK scaling has no name there, and one list of LongRoPE does
    not tell the other.

    Args:
        schedule: The frequencies.
        head_dim: Width of the head of which they rotate all or a part.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> rope_dictionary(Linear(Geometric(64, 500_000.0), 4.0), 64)
        {'rope_type': 'linear', 'rope_theta': 500000.0, 'factor': 4.0}
    """
    check_whole(head_dim=head_dim)
    for rope_type in ROPE_TYPES.values():
        if (said := rope_type.write(schedule, head_dim)) is not None:
            return {"rope_type": rope_type.name, **said}
    return None
