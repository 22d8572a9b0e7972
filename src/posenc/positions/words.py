"""Counts of steps that 63 bits do not hold: whole steps, and a rest in parts of one.

n = steps + rest · 2^-62 with 0 ≤ rest < 2^62, so that sums carry, and order goes by the steps and
then by the rest.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

REST_BITS = 62
"""Of a rest: two of them add up within an int64."""

MASK = (1 << REST_BITS) - 1

ONE_STEP, OF_REST = 1 << REST_BITS, 2.0**-REST_BITS
"""In units of a rest, and such a unit in steps."""

MOST_BITS = 2 * REST_BITS
"""Of a count in units of 2^-62 of a step, so that two counts add up within their words."""


HIGH_BITS = 20
"""Of a rest, which with 32 of the steps are a number that float64 holds."""

LOW_BITS = REST_BITS - HIGH_BITS

ABOVE_LOW, OF_HIGH = 1 << LOW_BITS, 2.0**-HIGH_BITS


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
    over = rest >> REST_BITS
    rest = rest.sub(over, alpha=ONE_STEP)
    return Words(over.add_(steps), rest)


def differences(one: Words, other: Words) -> Words:
    """Each less each of ``other``: ``one[..., :, None] - other[..., None, :]``, unless it wraps.

    Example:
        >>> halves = Words(torch.tensor([0, 1]), torch.tensor([1 << 61, 0]))
        >>> [word.tolist() for word in differences(halves, halves)]
        [[[0, -1], [0, 0]], [[0, 2305843009213693952], [2305843009213693952, 0]]]
    """
    # Opposites of all pairs would be four operations more.
    return carried(pairs(one.steps, other.steps), pairs(one.rest, other.rest))


def float_differences(
    one: Words, other: Words, *, long: bool = True, few: bool = False
) -> Float64[Tensor, "*shape rows columns"]:
    """``differences`` as float64, rounded once where below 2^32 steps.

    Numbers are cut into a multiple of 2^32, one of 2^-20, and what is left: pieces of as few digits
    that differences are exact. Sums from the largest piece on are exact where they cancel, and
    where they do not, the last one rounds.

    Args:
        one: Counts.
        other: What is subtracted.
        long: Whether a count of steps takes more than 31 bits.
        few: Whether pairs are made before they are cut, which is fewer operations; of many pairs
            they are the longer ones.

    Example:
        >>> minus, most = torch.tensor([-1]), torch.tensor([MASK])
        >>> zero = Words(torch.tensor([0]), torch.tensor([0]))
        >>> float_differences(Words(minus, most), zero).item() == -(2.0**-62)
        True
    """
    if long:
        return _long_differences(one, other)
    if few and other is not one:
        middle, low = _pieces(pairs(one.steps, other.steps), pairs(one.rest, other.rest))
    else:
        middle, low = ours = _pieces(*one)
        others = ours if other is one else _pieces(*other)
        middle, low = pairs(middle, others[0]), pairs(low, others[1])
    return middle.add_(low, alpha=OF_REST)


def pairs(one: Tensor, other: Tensor) -> Tensor:
    """Each less each of ``other``.

    Example:
        >>> pairs(torch.tensor([1, 2]), torch.tensor([0, 5]))
        tensor([[ 1, -4],
                [ 2, -3]])
    """
    return one.unsqueeze(-1) - (other if other.ndim == 1 else other.unsqueeze(-2))


def _pieces(steps: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """Multiples of 2^-20 of a step, of up to 52 bits, and what is left in units of a rest; this may
    be a difference of two."""
    high = rest >> LOW_BITS
    low = torch.sub(rest, high, alpha=ABOVE_LOW).double()
    return steps.double().add_(high.double(), alpha=OF_HIGH), low


def _long_differences(one: Words, other: Words) -> Tensor:
    """The same of steps of any length, with what is above 32 bits of them as a third piece."""
    ours, theirs = (_pieces(each.steps & 0xFFFFFFFF, each.rest) for each in (one, other))
    upper = pairs((one.steps >> 32).double(), (other.steps >> 32).double())
    middle = pairs(ours[0], theirs[0]).add_(upper, alpha=2.0**32)
    return middle.add_(pairs(ours[1], theirs[1]), alpha=OF_REST)


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


def as_floats(steps: Tensor, rest: Tensor) -> Float64[Tensor, "*shape"]:
    """n, exactly where float64 holds it, else within 3/4 of a unit in its last place.

    What float64 does not hold of a rest is added at last: it shows where steps and rest cancel,
    which is next to 0, and nowhere else.

    Example:
        >>> as_floats(torch.tensor([-1, 1]), torch.tensor([MASK, 1 << 61])).tolist()
        [-2.168404344971009e-19, 1.5]
    """
    near = rest.double()
    made = steps.double().add_(near, alpha=OF_REST)
    return made.add_((rest - near.long()).double(), alpha=OF_REST)


def of_floats(n: Float64[Tensor, "*shape"]) -> Words:
    """The words of numbers below 2^62, without what is below 2^-62.

    Example:
        >>> [word.tolist() for word in of_floats(torch.tensor([-(2.0**-62), 1.5]).double())]
        [[-1, 1], [4611686018427387903, 2305843009213693952]]
    """
    whole = n.trunc()
    return carried(whole.long(), n.sub(whole).mul_(ONE_STEP).long())


def few_float_differences(one: Words, other: Words) -> Float64[Tensor, "*shape rows columns"]:
    """``differences`` as ``as_floats``: in the fewest operations, which of many pairs are long.

    Example:
        >>> minus, zero = torch.tensor([-1]), torch.tensor([0])
        >>> few_float_differences(Words(minus, torch.tensor([MASK])), Words(zero, zero)).item()
        -2.168404344971009e-19
    """
    steps, rest = pairs(one.steps, other.steps), pairs(one.rest, other.rest)
    moved = steps.sign()
    rest.add_(moved, alpha=ONE_STEP)
    return steps.sub_(moved).double().add_(rest.double(), alpha=OF_REST)


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
