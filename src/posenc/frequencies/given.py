"""Frequencies that are given: as numbers, or as parts of other schedules."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from operator import index
from typing import Any

from jaxtyping import Float32
from torch import Tensor, pi

from posenc.arguments import check_numbers, check_positive_number
from posenc.frequencies.powers import Geometric
from posenc.frequencies.schedule import (
    TWO_PI,
    Number,
    Rescaled,
    Schedule,
    as_float32,
    exact,
    rational,
)


@dataclass(frozen=True, repr=False)
class FromCheckpoint(Schedule):
    """ω_i as given: a float is the exact rational number that it is, not its decimal print.

    Args:
        frequencies: Radians per position; a tensor of any float dtype, or numbers.

    Example:
        >>> import torch
        >>> FromCheckpoint(torch.tensor([1.0, 0.1]))
        FromCheckpoint((1.0, 0.10000000149011612))
        >>> FromCheckpoint([0.5, 0.25]).frequencies
        (Fraction(1, 2), Fraction(1, 4))
    """

    frequencies: tuple[Fraction, ...]

    def __init__(self, frequencies: Tensor | Iterable[Number]):
        row = _row(frequencies=frequencies)
        object.__setattr__(self, "frequencies", tuple(map(rational, row)))

    def __repr__(self) -> str:
        floats = (float(w) for w in self.frequencies)
        shown = (f if f == w else w for f, w in zip(floats, self.frequencies, strict=True))
        return f"FromCheckpoint({tuple(shown)!r})"

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(map(exact, self.frequencies))


def as_schedule(frequencies: Schedule | Tensor | Iterable[Number]) -> Schedule:
    """A schedule as it is, or one of a row of frequencies in radians per position.

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


@dataclass(frozen=True)
class TurnsPerUnit(Schedule):
    """ω_i = 2π · turns_i: whole turns at whole positions, where ``turns`` are whole.

    Example:
        >>> TurnsPerUnit((1, 0.25)).wavelengths()
        (1.0, 4.0)
    """

    turns_per_unit: tuple[Number, ...]

    def __post_init__(self):
        row = _row(turns_per_unit=self.turns_per_unit)
        object.__setattr__(self, "turns_per_unit", row)

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(TWO_PI * exact(turns) for turns in self.turns_per_unit)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return 2 * pi * as_float32(self.turns_per_unit)


@dataclass(frozen=True)
class Selected(Rescaled):
    """ω_j for j in ``indices``: what one axis of a grid turns by.

    Example:
        >>> Selected(Geometric(6, base=1000.0), (2, 0)).wavelengths()
        (628.3185307179587, 6.283185307179586)
    """

    indices: tuple[int, ...]

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "indices", tuple(map(index, self.indices)))

    def __len__(self) -> int:
        return len(self.indices)

    def radians(self) -> tuple[Decimal, ...]:
        every = self.of.radians()
        return tuple(every[i] for i in self.indices)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.of.float32(form)[list(self.indices)]


@dataclass(frozen=True)
class Divided(Rescaled):
    """ω_i / e_i, and an attention factor.

    Args:
        of: The schedule to rescale.
        divisors: e_i, one a frequency.
        attention: What the attention factor of ``of`` is multiplied with.

    Reference:
        Ding et al. 2024, "LongRoPE", equation 2 (arXiv:2402.13753), where λ_i stands for e_i.

    Example:
        >>> Divided(Geometric(4, base=100.0), (1.0, 4.0)).wavelengths()
        (6.283185307179586, 251.32741228718345)
    """

    divisors: tuple[Number, ...]
    attention: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "divisors", _row(divisors=self.divisors))
        check_positive_number(**{f"divisors[{i}]": each for i, each in enumerate(self.divisors)})
        check_positive_number(attention=self.attention)
        self._settle(
            attention_factor=self.of.attention_factor * float(self.attention),
            softmax_factor=self.of.softmax_factor,
        )

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w / exact(e) for w, e in zip(self.of.radians(), self.divisors, strict=True))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        divisors = as_float32(self.divisors)
        if isinstance(self.of, Geometric):  # rounded as in transformers, which divides once
            exponents = as_float32(range(0, self.of.dim, 2)) / self.of.dim
            return 1.0 / (divisors * float(self.of.base) ** exponents)
        return self.of.float32(form) / divisors


@dataclass(frozen=True)
class Difference(Schedule):
    """ω_i − ν_i: turning by it takes a rotation by ν to one by ω.

    The fixed-point turns are subtracted as integers, so phases compose without any error. The
    attention factor takes that of ν to that of ω.

    Args:
        to: ω.
        since: ν, with as many frequencies.

    Example:
        >>> Difference(Geometric(4, base=4.0), Geometric(4, base=16.0)).wavelengths()
        (inf, 25.132741228718345)
    """

    to: Schedule
    since: Schedule

    def __post_init__(self):
        self._settle(attention_factor=self.to.attention_factor / self.since.attention_factor)

    def radians(self) -> tuple[Decimal, ...]:
        pairs = zip(self.to.radians(), self.since.radians(), strict=True)
        return tuple(after - before for after, before in pairs)

    def turns(self) -> tuple[int, ...]:
        pairs = zip(self.to.turns(), self.since.turns(), strict=True)
        return tuple(after - before for after, before in pairs)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.to.float32(form) - self.since.float32(form)


def _row(**given: Any) -> tuple[Number, ...]:
    """One or more finite numbers, given as a tensor, an array or any row."""
    ((name, row),) = given.items()
    row = tuple(row.tolist() if hasattr(row, "tolist") else row)
    check_numbers(**{name: row})
    if not row:
        raise ValueError(f"{name} is empty; it must have one number a frequency.")
    return row
