"""Counts of steps that 63 bits do not hold: whole steps, and a rest in parts of one.

n = steps + rest · 2^-62 with 0 ≤ rest < 2^62, so that sums carry, and order goes by the steps and
then by the rest.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

REST_BITS = 62
"""Of a rest: two of them add up within an int64."""

MASK = (1 << REST_BITS) - 1

MOST_BITS = 2 * REST_BITS
"""Of a count in units of 2^-62 of a step, so that two counts add up within their words."""


MIDDLE_BITS = 20
"""Of a rest, which with 32 of the steps are a whole number that float64 holds."""


class Words(NamedTuple):
    """steps + rest · 2^-62; both have one shape."""

    steps: Int64[Tensor, "*shape"]
    rest: Int64[Tensor, "*shape"]


def carried(steps: Tensor, rest: Tensor) -> Words:
    """The same count where the rest has left its bounds.

    Example:
        >>> [word.tolist() for word in carried(torch.tensor([1]), torch.tensor([1 << 62]))]
        [[2], [0]]
    """
    return Words(steps + (rest >> REST_BITS), rest & MASK)


def differences(one: Words, other: Words) -> Words:
    """Each less each of ``other``: ``one[..., :, None] - other[..., None, :]``, unless it wraps.

    Example:
        >>> halves = Words(torch.tensor([0, 1]), torch.tensor([1 << 61, 0]))
        >>> [word.tolist() for word in differences(halves, halves)]
        [[[0, -1], [0, 0]], [[0, 2305843009213693952], [2305843009213693952, 0]]]
    """
    steps = one.steps.unsqueeze(-1) - other.steps.unsqueeze(-2)
    rest = one.rest.unsqueeze(-1) - other.rest.unsqueeze(-2)
    return carried(steps, rest)  # opposites of all pairs would be four operations more


def float_differences(
    one: Words, other: Words, factor: float, *, long: bool = True
) -> Float[Tensor, "*shape rows columns"]:
    """``differences`` as float64, times a power of two, rounded once where below 2^32 steps.

    Numbers are cut before pairs are made of them, into a multiple of 2^32, one of 2^-20, and what
    is left: pieces of as few digits that differences are exact. Sums from the largest piece on are
    exact where they cancel, and where they do not, the last one rounds.

    Args:
        one: Counts.
        other: What is subtracted.
        factor: What counts are multiplied with, a power of two.
        long: Whether a count of steps takes more than 31 bits.

    Example:
        >>> minus, most = torch.tensor([-1]), torch.tensor([MASK])
        >>> zero = Words(torch.tensor([0]), torch.tensor([0]))
        >>> float_differences(Words(minus, most), zero, 2.0).item() == -(2.0**-61)
        True
    """
    ours = _pieces(one, long)
    pieces = zip(ours, ours if other is one else _pieces(other, long), strict=True)
    low, middle, *upper = (a.unsqueeze(-1) - b.unsqueeze(-2) for a, b in pieces)
    for part in upper:
        middle.add_(part, alpha=2.0 ** (32 + MIDDLE_BITS))
    middle.add_(low, alpha=2.0 ** (MIDDLE_BITS - REST_BITS))
    return middle.mul_(factor * 2.0**-MIDDLE_BITS)


def _pieces(of: Words, long: bool) -> list[Tensor]:
    """Whole numbers of up to 52 bits, as float64: in units of 2^-62, 2^-20 and, if any, 2^32."""
    steps, high = of.steps, of.rest >> (REST_BITS - MIDDLE_BITS)
    low = of.rest & ((1 << (REST_BITS - MIDDLE_BITS)) - 1)
    middle = torch.add(high, steps & 0xFFFFFFFF if long else steps, alpha=1 << MIDDLE_BITS)
    upper = [(steps >> 32).double()] if long else []
    return [low.double(), middle.double(), *upper]


def negative(of: Words) -> Words:
    """−n."""
    return carried(-of.steps, -of.rest)


def compared(
    one: Words, other: Words, relation: Callable[[Tensor, Tensor], Tensor]
) -> Bool[Tensor, "*shape"]:
    """A relation of order or equality between two counts."""
    same = one.steps == other.steps
    return torch.where(same, relation(one.rest, other.rest), relation(one.steps, other.steps))


def ranks(*several: Words) -> tuple[Int64[Tensor, "*shape"], ...]:
    """Numbers in the order of the counts, equal where these are, among all of them together.

    Example:
        >>> zero = torch.zeros(2, dtype=torch.int64)
        >>> ranks(Words(torch.tensor([5, 1]), zero), Words(torch.tensor([5, 9]), zero + 1))
        (tensor([1, 0]), tensor([2, 3]))
    """
    pairs = [torch.stack((each.steps.flatten(), each.rest.flatten())) for each in several]
    _, places = torch.cat(pairs, dim=1).unique(dim=1, return_inverse=True)
    parts = places.split([each.steps.numel() for each in several])
    return tuple(part.view(each.steps.shape) for part, each in zip(parts, several, strict=True))


def as_floats(of: Words, dtype: torch.dtype) -> Float[Tensor, "*shape"]:
    """n, by the nearest whole step and what is left of it: a count next to 0 keeps its digits.

    Example:
        >>> minus, most = torch.tensor([-1, 1]), torch.tensor([MASK, 1 << 61])
        >>> as_floats(Words(minus, most), torch.float64).tolist() == [-(2.0**-62), 1.5]
        True
    """
    up = of.rest >> (REST_BITS - 1)
    steps, rest = (of.steps + up).to(dtype), torch.sub(of.rest, up, alpha=1 << REST_BITS)
    return torch.add(steps, rest.to(dtype), alpha=2.0**-REST_BITS)


def of_digits(digits: Int64[Tensor, "*shape"], shift: Int64[Tensor, "*shape"]) -> Words:
    """digits · 2^shift, in units of 2^-62; where ``shift`` is negative, digits end in zeros."""
    digits, shift = digits >> (-shift).clamp(0, 63), shift.clamp(min=0)
    high = (digits << (shift - REST_BITS).clamp(0, 63)) >> (REST_BITS - shift).clamp(0, 63)
    return Words(high, (digits << shift.clamp(max=63)) & MASK)


def too_long(bits: int, told: str = "") -> str:
    """What to tell of coordinates that span so many bits."""
    return (
        f"These coordinates{told} are whole numbers of one step only with {bits} bits; {MOST_BITS} "
        f"are there. Say how fine they are meant, as Coordinates.rounded(values, Fraction(1, "
        f"10**6))."
    )


def of_integers(counts: Sequence[int], device: torch.device | str | None = None) -> Words:
    """Python's integers, in units of 2^-62 of a step.

    Raises:
        ValueError: One is of more than 124 bits.
    """
    most = max(map(abs, counts), default=0).bit_length()
    if most > MOST_BITS:
        raise ValueError(too_long(most))
    steps = torch.tensor([n >> REST_BITS for n in counts], dtype=torch.int64, device=device)
    rest = torch.tensor([n & MASK for n in counts], dtype=torch.int64, device=device)
    return Words(steps, rest)


def as_integers(steps: Any, rest: Any) -> Any:
    """Lists of both words as lists of Python's integers, in units of 2^-62 of a step."""
    if not isinstance(steps, list):
        return (steps << REST_BITS) + rest
    return [as_integers(one, other) for one, other in zip(steps, rest, strict=True)]
