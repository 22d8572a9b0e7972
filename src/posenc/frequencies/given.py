"""Frequencies that are given as numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_numbers
from posenc.frequencies.schedule import Schedule, exact


@dataclass(frozen=True, repr=False)
class FromCheckpoint(Schedule):
    """ω_i as given: a float is the exact rational number that it is, not its decimal print.

    Args:
        frequencies: Radians per position; a tensor of any float dtype, or numbers.

    Example:
        >>> FromCheckpoint(torch.tensor([1.0, 0.1]))
        FromCheckpoint((1.0, 0.10000000149011612))
        >>> FromCheckpoint([0.5, 0.25]).frequencies
        (Fraction(1, 2), Fraction(1, 4))
    """

    frequencies: tuple[Fraction, ...]

    def __init__(self, frequencies: Tensor | Iterable[float | Fraction]):
        row: Any = frequencies
        row = tuple(row.tolist() if hasattr(row, "tolist") else row)
        check_numbers(frequencies=row)
        if not row:
            raise ValueError("frequencies is empty; it must have one number a pair.")
        object.__setattr__(self, "frequencies", tuple(map(Fraction, row)))

    def __repr__(self) -> str:
        floats = (float(w) for w in self.frequencies)
        shown = (f if f == w else w for f, w in zip(floats, self.frequencies, strict=True))
        return f"FromCheckpoint({tuple(shown)!r})"

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(map(exact, self.frequencies))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return torch.tensor([float(w) for w in self.frequencies], dtype=torch.float32)


def as_schedule(frequencies: Schedule | Tensor | Iterable[float | Fraction]) -> Schedule:
    """A schedule as it is, or one of a row of frequencies in radians per position.

    Raises:
        TypeError: The schedule depends on the length and was not resolved by ``at(length)``.

    Example:
        >>> as_schedule([1.0, 0.1])
        FromCheckpoint((1.0, 0.1))
    """
    if isinstance(frequencies, Schedule):
        return frequencies
    if hasattr(frequencies, "at"):
        name = type(frequencies).__name__
        raise TypeError(f"{name} depends on the length; pass {name}(...).at(length).")
    return FromCheckpoint(frequencies)
