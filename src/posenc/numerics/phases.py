"""Exact phases: position × frequency as an integer fraction of a turn.

A frequency is a 192-bit fixed-point number of turns per position, a position is an int64, and
their product modulo one turn is wrapping integer arithmetic. So a phase is exact, the same on
every device, and out of reach of casts: phase(p + k) = phase(p) + phase(k) bit for bit. Only the
last step leaves the integers, through float64 and one rounding.

``phases`` multiplies limbs by operations of one element at a time, which graphs fuse.
``phases_of_sum`` takes numbers in memory, by one product of matrices of digits.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.frequencies.schedule import TURN_BITS

LIMB = 32
LIMBS = TURN_BITS // LIMB
LIMB_MASK = (1 << LIMB) - 1
TURNS_TO_RADIANS = 6.283185307179586 * 2.0**-64

DIGIT = 24
DIGITS = TURN_BITS // DIGIT  # of a phase
DIGIT_MASK = (1 << DIGIT) - 1
STEP_DIGITS = 3  # of an int64, the last with its sign

MOST_SUMMANDS = 15
"""Of one product: each adds less than 2^49.1 to a sum, which float64 holds exactly below 2^53."""

KEPT_TURNS = 64
"""Digits of so many schedules are kept, as making them takes longer than a few tokens do."""


class Phases(NamedTuple):
    """A fraction of a turn: high·2^-64 + middle·2^-128 + low·2^-192, each word unsigned."""

    high: Int64[Tensor, "*shape"]
    middle: Int64[Tensor, "*shape"]
    low: Int64[Tensor, "*shape"]


class Summand(NamedTuple):
    """Steps, and the turns of one in units of 2^-192: one part of what a phase adds up from."""

    steps: Int64[Tensor, "*shape"]
    turns: tuple[int, ...]


def turn_limbs(
    turns: tuple[int, ...], device: torch.device | str | None = None
) -> Int64[Tensor, "limbs frequencies"]:
    """Fixed-point frequencies as 32-bit limbs, six each, the least significant first."""
    rows = [[(turn >> (LIMB * j)) & LIMB_MASK for turn in turns] for j in range(LIMBS)]
    return torch.tensor(rows, dtype=torch.int64, device=device).reshape(LIMBS, len(turns))


def phases(
    positions: Int64[Tensor, "*shape"], limbs: Int64[Tensor, "limbs *frequencies"]
) -> Phases:
    """positions × frequencies modulo one turn; the two shapes broadcast.

    Schoolbook multiplication of a signed two-limb position and an unsigned frequency of six limbs.
    Every partial sum fits 64 bits; the carry of the unsigned row is shifted logically, that of the
    signed row arithmetically.

    Example:
        >>> quarter = turn_limbs((1 << 190,))
        >>> phases(torch.tensor([2]), quarter).high == torch.iinfo(torch.int64).min
        tensor([True])
    """
    low_half, high_half = positions & LIMB_MASK, positions >> LIMB
    digits, carry = [], torch.zeros_like(positions)
    for j in range(LIMBS):
        total = low_half * limbs[j] + carry
        digits.append(total & LIMB_MASK)
        carry = (total >> LIMB) & LIMB_MASK
    carry = torch.zeros_like(positions)
    for j in range(LIMBS - 1):
        total = high_half * limbs[j] + digits[j + 1] + carry
        digits[j + 1] = total & LIMB_MASK
        carry = total >> LIMB
    low, middle, high = (digits[j] | (digits[j + 1] << LIMB) for j in range(0, LIMBS, 2))
    return Phases(high, middle, low)


def cos_sin_of(
    phase: Phases,
) -> tuple[Float64[Tensor, "*shape"], Float64[Tensor, "*shape"]]:
    """cos and sin of a phase in float64, at most 3 units in the last place from the truth.

    The phase is reduced to its nearest quarter turn, and the absolute remainder is taken, while
    both are still integers: a value near 0 keeps all of its digits.
    """
    quadrant = (((phase.high >> 61) + 1) >> 1) & 3
    high = phase.high - (quadrant << 62)
    negative = high < 0
    # The complement is the negative less one unit of 2^-192.
    flip = high >> 63
    high, middle, low = high ^ flip, phase.middle ^ flip, phase.low ^ flip
    fraction = high.double() + (_unsigned(middle) + _unsigned(low) * 2.0**-64) * 2.0**-64
    angle = fraction * TURNS_TO_RADIANS

    cos, sin = angle.cos(), angle.sin()
    sin = torch.where(negative, -sin, sin)
    across = (quadrant & 1) == 1
    cos, sin = torch.where(across, sin, cos), torch.where(across, cos, sin)
    cos = torch.where((quadrant == 1) | (quadrant == 2), -cos, cos)
    sin = torch.where(quadrant >= 2, -sin, sin)
    return cos, sin


def _unsigned(word: Tensor) -> Tensor:
    """A word of 64 bits in float64, within rounding however small it is: the first that is not 0
    holds all digits of a fine coordinate's phase."""
    wide = word.double()
    return wide + (word < 0).to(wide.dtype) * 2.0**64  # a bool times a float has the default dtype


def added(first: Phases, second: Phases) -> Phases:
    """The sum of two phases modulo one turn, exactly."""
    low = first.low + second.low
    middle = first.middle + second.middle
    with_carry = middle + _carry(low, first.low)
    high = first.high + second.high + _carry(middle, first.middle) + _carry(with_carry, middle)
    return Phases(high, with_carry, low)


def _carry(total: Tensor, part: Tensor) -> Tensor:
    """1 where a sum of unsigned words has wrapped: it is then below its parts."""
    sign = -(2**63)
    return ((total ^ sign) < (part ^ sign)).to(torch.int64)


# Sums of phases by digits. A step has three digits of 24 bits and a frequency eight. A product of
# two digits has 48 bits, so that a sum of some thirty is a whole number below 2^53, in whatever
# order it is added up. Several axes are one such sum, which takes hardly longer than one axis.


def phases_of_sum(summands: Sequence[Summand]) -> Phases:
    """The phase of Σ steps · turns modulo one turn, exact.

    Args:
        summands: As many turns of each; steps of one shape.
    """
    parts = range(0, len(summands), MOST_SUMMANDS)
    return reduce(added, (_of_few(summands[first : first + MOST_SUMMANDS]) for first in parts))


def _of_few(summands: Sequence[Summand]) -> Phases:
    shape, device = summands[0].steps.shape, summands[0].steps.device
    steps = _step_digits(torch.stack([each.steps.flatten() for each in summands], dim=-1))
    turns = _turn_digits(tuple(each.turns for each in summands), device)
    sums = torch.matmul(steps, turns).to(torch.int64)
    return Phases(*(word.view(*shape, turns.shape[-1]) for word in _words(sums)))


def _step_digits(steps: Int64[Tensor, "rows summands"]) -> Float64[Tensor, "rows digits"]:
    """The three digits of each, the least significant first."""
    digits = (steps & DIGIT_MASK, (steps >> DIGIT) & DIGIT_MASK, steps >> (2 * DIGIT))
    return torch.stack(digits, dim=-1).flatten(1).to(torch.float64)


def _turn_digits(
    several: tuple[tuple[int, ...], ...], device: torch.device
) -> Float64[Tensor, "columns digits turns"]:
    """What each digit of the steps is multiplied with in each column of the product."""
    shape = (DIGITS, STEP_DIGITS * len(several), len(several[0]))
    values = _columns(several)
    if not values:  # a buffer of nothing is none to torch
        return torch.empty(shape, dtype=torch.float64, device=device)
    return torch.frombuffer(values, dtype=torch.float64).view(shape).to(device)


@lru_cache(maxsize=KEPT_TURNS)
def _columns(several: tuple[tuple[int, ...], ...]) -> array:
    columns = range(DIGITS)
    digits = [[[float(turn >> DIGIT * column & DIGIT_MASK) for turn in turns]
               for column in columns] for turns in several]  # fmt: skip
    none = [[0.0] * len(several[0])] * (STEP_DIGITS - 1)
    padded = [none + own for own in digits]
    rows = (own[len(none) + c - i] for c in columns for own in padded for i in range(STEP_DIGITS))
    return array("d", chain.from_iterable(rows))


def _words(sums: Int64[Tensor, "columns rows turns"]) -> tuple[Tensor, Tensor, Tensor]:
    """What overflows a column goes to the next. Overwrites."""
    *lower, last = sums
    for column, following in zip(lower, sums[1:], strict=True):
        following += column >> DIGIT
        column &= DIGIT_MASK
    a, b, c, d, e, f, g = lower
    low = a | (b << 24) | (c << 48)
    middle = (c >> 16) | (d << 8) | (e << 32) | (f << 56)
    high = (f >> 8) | (g << 16) | (last << 40)
    return high, middle, low
