"""What a frequency schedule is: exact numbers that depend on nothing but its own fields."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import log10
from typing import TYPE_CHECKING

from posenc.arguments import check_number

if TYPE_CHECKING:
    from torch import Tensor

TURN_BITS = 192
"""Fractional bits of a fixed-point frequency in turns per position."""

FINE_TURN_BITS = TURN_BITS + 128
"""Of ``fine_turns``, so that a scale may be folded in before the one rounding."""

# Digits that keep a frequency below 1 turn exact to well under one unit of 2^-320.
PRECISION = Context(prec=int(FINE_TURN_BITS * log10(2)) + 14, Emin=-(10**9), Emax=10**9)

# 2π, cut after 120 decimals; more than PRECISION can use.
TWO_PI = Decimal(
    "6.283185307179586476925286766559005768394338798750211641949889184615632812572417997256069650684234"
    "135964296173026564613294"
)

Number = int | float | Fraction


def rational(number: Number) -> Fraction:
    """A number as the rational that it is, in Python's integers."""
    whole = Fraction(number)
    return Fraction(int(whole.numerator), int(whole.denominator))


def exact(number: Number) -> Decimal:
    """The same to the digits of the context."""
    whole = rational(number)
    return Decimal(whole.numerator) / Decimal(whole.denominator)


def check_extension(factor: Number) -> None:
    """Refuse a factor below 1, by which no length is extended."""
    check_number(1.0, factor=factor)


def as_float32(numbers: Iterable[Number | Decimal]) -> "Tensor":
    """Numbers in float32 on the CPU, whatever defaults a loader has set to build a model."""
    import torch  # exact frequencies need none

    return torch.tensor([float(each) for each in numbers], dtype=torch.float32, device="cpu")


class Schedule(ABC):
    """Frequencies, in radians per position, as exact as they are needed.

    A schedule is a frozen dataclass: equal fields, equal numbers, on every machine. What follows
    from the fields is computed once and stays with the object. A schedule of your own needs
    ``radians``, and ``float32`` where published code rounds in another order.
    """

    attention_factor: float = 1.0
    """What cosines and sines are multiplied with, and so each of queries and keys."""

    softmax_factor: float = 1.0
    """What attention multiplies its softmax scale with."""

    @abstractmethod
    def radians(self) -> tuple[Decimal, ...]:
        """The frequencies ω_i, in radians per position; called within ``PRECISION``."""

    def float32(self, form: str) -> "Tensor":
        """The frequencies as public float32 code has them: here the exact ones, rounded.

        ``form`` is ``"float32"`` or ``"float32-log"``, of powers alone.
        """
        return as_float32(self._radians)

    def __len__(self) -> int:
        return len(self._radians)

    def turns(self) -> tuple[int, ...]:
        """The frequencies as fixed-point turns per position: round(ω_i / 2π · 2^192)."""
        return self._turns

    def fine_turns(self) -> tuple[int, ...]:
        """The same in units of 2^-320: what turns at any scale of coordinates are made of."""
        return self._fine_turns

    def wavelengths(self) -> tuple[float, ...]:
        """Positions per turn, 2π / ω_i; infinite for a frequency of 0."""
        return self._wavelengths

    @cached_property
    def _radians(self) -> tuple[Decimal, ...]:
        with localcontext(PRECISION):
            return self.radians()

    @cached_property
    def _turns(self) -> tuple[int, ...]:
        return _fixed_point(self._radians, TURN_BITS)

    @cached_property
    def _fine_turns(self) -> tuple[int, ...]:
        return _fixed_point(self._radians, FINE_TURN_BITS)

    @cached_property
    def _wavelengths(self) -> tuple[float, ...]:
        with localcontext(PRECISION):
            return tuple(float(TWO_PI / w) if w else float("inf") for w in self._radians)

    def _settle(self, *, attention_factor: float, softmax_factor: float = 1.0) -> None:
        """Set both factors when the schedule is made, so that a graph sees numbers."""
        object.__setattr__(self, "attention_factor", attention_factor)
        object.__setattr__(self, "softmax_factor", softmax_factor)


def _fixed_point(radians: tuple[Decimal, ...], bits: int) -> tuple[int, ...]:
    with localcontext(PRECISION):
        return tuple(int((w / TWO_PI * 2**bits).to_integral_value()) for w in radians)


@dataclass(frozen=True)
class Rescaled(Schedule):
    """A schedule with as many frequencies as another, ``of``, and its factors."""

    of: Schedule

    def __post_init__(self):
        if not isinstance(self.of, Schedule):
            raise TypeError(f"of is {self.of!r}; it must be a schedule, or its .at(length).")
        factors = self.of.attention_factor, self.of.softmax_factor
        self._settle(attention_factor=factors[0], softmax_factor=factors[1])

    def __len__(self) -> int:
        return len(self.of)
