"""Frequencies that are given as turns a unit, exactly."""

from dataclasses import dataclass
from decimal import Decimal

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import TWO_PI, Number, Schedule, exact, listed


@dataclass(frozen=True)
class TurnsPerUnit(Schedule):
    """ω_i = 2π · turns_i: whole turns at whole positions, where ``turns`` are whole.

    Raises:
        TypeError: ``turns`` are no numbers.
        ValueError: There is none, or one is not finite.

    Example:
        >>> TurnsPerUnit((1, 0.25)).wavelengths()
        (1.0, 4.0)
    """

    turns_per_unit: tuple[Number, ...]

    def __post_init__(self):
        given = listed(self, "turns_per_unit", self.turns_per_unit)
        object.__setattr__(self, "turns_per_unit", given)
        if not given or any(not abs(turns) < float("inf") for turns in given):
            raise ValueError(
                f"TurnsPerUnit: turns_per_unit are {given}; give one or more finite numbers."
            )

    def __len__(self) -> int:
        return len(self.turns_per_unit)

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(TWO_PI * exact(turns) for turns in self.turns_per_unit)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        turns = torch.tensor([float(turns) for turns in self.turns_per_unit], dtype=torch.float32)
        return 2 * torch.pi * turns
