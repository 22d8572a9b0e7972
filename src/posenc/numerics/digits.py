"""Phases of many steps by one product of matrices, whose sums of digits float64 holds exactly.

A step has three digits of 24 bits and a frequency eight. A product of two digits has 48 bits, so
that a sum of some thirty is a whole number below 2^53, in whatever order it is added up. What
several axes come to is one such sum: twice as many digits take hardly longer, where phases that are
multiplied apart and then added take twice as long. It is for numbers in memory; graphs fuse the
operations of ``posenc.numerics.phases``.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import chain

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.frequencies.schedule import TURN_BITS
from posenc.numerics.phases import Phases, Summand, added

DIGIT = 24
MASK = (1 << DIGIT) - 1
DIGITS = TURN_BITS // DIGIT
"""Of a phase."""

STEP_DIGITS = 3
"""Of an int64, the last with its sign."""

MOST_SUMMANDS = 15
"""Of one product: each adds less than 2^49.1 to a sum."""

KEPT_TURNS = 64
"""Digits of so many schedules are kept, as making them takes longer than a few tokens do."""


def phases_of_sum(summands: Sequence[Summand]) -> Phases:
    """The phase of Σ steps · turns modulo one turn, exact.

    Args:
        summands: As many turns of each; steps of one shape.

    Example:
        >>> eighth = Summand(torch.tensor([1]), (1 << 189,))
        >>> phases_of_sum([eighth, eighth]).high == 1 << 62  # a quarter of 2^64
        tensor([[True]])
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
    digits = (steps & MASK, (steps >> DIGIT) & MASK, steps >> (2 * DIGIT))
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
    digits = [[[float(turn >> DIGIT * column & MASK) for turn in turns]
               for column in columns] for turns in several]  # fmt: skip
    none = [[0.0] * len(several[0])] * (STEP_DIGITS - 1)
    rows = (
        (none + own)[STEP_DIGITS - 1 + column - i]
        for column in columns
        for own in digits
        for i in range(STEP_DIGITS)
    )
    return array("d", chain.from_iterable(rows))


def _words(sums: Int64[Tensor, "columns rows turns"]) -> tuple[Tensor, Tensor, Tensor]:
    """What overflows a column goes to the next. Overwrites."""
    *lower, last = sums
    for column, following in zip(lower, sums[1:], strict=True):
        following += column >> DIGIT
        column &= MASK
    a, b, c, d, e, f, g = lower
    low = a | (b << 24) | (c << 48)
    middle = (c >> 16) | (d << 8) | (e << 32) | (f << 56)
    high = (f >> 8) | (g << 16) | (last << 40)
    return high, middle, low
