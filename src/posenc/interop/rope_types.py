"""The rope dictionary of a configuration: what type it is of, and the schedule that it means."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from posenc.arguments import check_whole
from posenc.frequencies import Schedule
from posenc.frequencies.huggingface import COMMON, RopeType
from posenc.frequencies.registry import ROPE_TYPES
from posenc.frequencies.schedule import Rescaled
from posenc.interop.rope_models import TEMPERATURE

OURS = "posenc_"
"""Before the names under which transformers knows the exact types, once they are registered."""


def rope_type_of(values: Mapping[str, Any], family: str = "") -> RopeType:
    """The rope type that a dictionary means, old names included."""
    given = (values.get("rope_type"), values.get("type"), "default")
    name = str(next(each for each in given if each is not None)).removeprefix(OURS)
    types = ROPE_TYPES.values()
    found = next((each for each in types if each.claims(name, values, family)), None)
    found = found or next((each for each in types if name in (each.name, *each.aliases)), None)
    if found is None:
        raise ValueError(f"rope_type is {name!r}; known are {', '.join(ROPE_TYPES)}.")
    if unknown := sorted({*values} - {*COMMON, *found.keys, *TEMPERATURE}):
        named = ", ".join(map(repr, unknown))
        raise ValueError(f"The rope dictionary has the unknown key {named}.")
    return found


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


@dataclass(frozen=True)
class Backwards(Rescaled):
    """−ω_i: every pair turns the other way, as in nanochat."""

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(-w for w in self.of.radians())
