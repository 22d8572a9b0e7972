"""What a frequency schedule is: exact numbers that depend on nothing but its own fields."""

from abc import ABC, abstractmethod
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import isfinite, log10

from torch import Tensor

TURN_BITS = 192
"""Fractional bits of a fixed-point frequency in turns per position."""

# Digits that keep a frequency below 1 turn exact to well under one unit of 2^-192.
PRECISION = Context(prec=int(TURN_BITS * log10(2)) + 33, Emin=-(10**9), Emax=10**9)

# 2π, cut after 120 decimals; more than PRECISION can use.
TWO_PI = Decimal(
    "6.283185307179586476925286766559005768394338798750211641949889184615632812572417997256069650684234"
    "135964296173026564613294"
)

Number = int | float | Fraction


def exact(number: Number) -> Decimal:
    """A number as the rational that it is, to the digits of the context."""
    whole = Fraction(number)
    return Decimal(whole.numerator) / Decimal(whole.denominator)


def check_positive(owner: object, **values: Number) -> None:
    """Refuse what is not positive and finite.

    Raises:
        ValueError: A value is not; its name is told.
    """
    for name, value in values.items():
        if not (value > 0 and isfinite(value)):
            raise ValueError(
                f"{type(owner).__name__}: {name} is {value}; it must be positive and finite."
            )


class Schedule(ABC):
    """Frequencies, in radians per position, as exact as they are needed.

    A schedule is a frozen dataclass: equal fields, equal numbers, on every machine. Schedules that
    rescale another hold it as a field, so they nest.
    """

    @abstractmethod
    def radians(self) -> tuple[Decimal, ...]:
        """The frequencies ω_i, in radians per position; called within ``PRECISION``."""

    @abstractmethod
    def float32(self, form: str) -> Tensor:
        """The frequencies as the common float32 formulas round them, for parity."""

    @property
    def attention_factor(self) -> float:
        """What cosines and sines are multiplied with, and so each of queries and keys."""
        return 1.0

    @property
    def softmax_factor(self) -> float:
        """What attention multiplies its softmax scale with."""
        return 1.0

    def __len__(self) -> int:
        return len(self.turns())

    def turns(self) -> tuple[int, ...]:
        """The frequencies as fixed-point turns per position: round(ω_i / 2π · 2^192)."""
        with localcontext(PRECISION):
            return tuple(
                int((w / TWO_PI * 2**TURN_BITS).to_integral_value()) for w in self.radians()
            )

    def wavelengths(self) -> tuple[float, ...]:
        """Positions per turn, 2π / ω_i; infinite for a frequency of 0."""
        with localcontext(PRECISION):
            return tuple(float(TWO_PI / w) if w else float("inf") for w in self.radians())
