"""Along which differences a bias goes: of one axis, or of the sides of a window."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod

import torch
from torch import Tensor

LARGEST_OBLONG = 1024
"""Tokens of oblong windows whose sides are looked for."""


def along(seen: Tensor) -> tuple[Tensor, Tensor]:
    """For each head, how far numbers of one diagonal are apart, and how large they are.

    Of keys before the query, in a bias ``[heads, seq, seq]`` with −∞ where keys are hidden.
    """
    seq = seen.shape[-1]
    each = torch.zeros(len(seen), dtype=torch.float64)
    for back in range(1, seq):
        least, most = extremes(seen.diagonal(-back, 1, 2), 1)
        each = each.maximum((most - least).nan_to_num(0, 0, 0))
    below = seen[:, torch.ones(seq, seq, dtype=torch.bool).tril()].nan_to_num(0, 0, 0)
    return each, below.abs().amax(1)


@dataclass(frozen=True)
class Window:
    """Tokens of a window, row after row, whose bias goes by differences along its sides."""

    sides: tuple[int, ...]
    before: int  # how many tokens stand before the first row; a class token is one
    off: float  # how far numbers of pairs that lie alike are apart
    seen: Tensor  # the bias less that of each query's own key; −∞ where keys are hidden

    @property
    def size(self) -> str:
        """Its sides, in words."""
        return " × ".join(map(str, self.sides))

    @property
    def is_square(self) -> bool:
        """Whether it has two equal sides."""
        return len(self.sides) == 2 and len(set(self.sides)) == 1

    @property
    def said(self) -> str:
        """One line."""
        if not self.is_square:
            return f"of {self.size} tokens: it depends on the differences along each axis alone"
        behind = " behind a class token" if self.before else ""
        hides = ", of keys that it does not hide" if bool(self.seen.isneginf().any()) else ""
        return (
            f"of {self.size} tokens, row after row{behind}: it depends on the differences of rows "
            f"and of columns alone{hides}"
        )

    def shared(self) -> list[tuple[int, int]]:
        """Two differences of rows and columns that receive one number in every head.

        Empty where none do but those that differ in signs alone.
        """
        profile = _ends(self.seen[:, self.before :, self.before :], self.sides)[1].T.contiguous()
        apart = torch.cartesian_prod(*(torch.arange(1 - n, n) for n in self.sides))
        known = profile.isfinite().any(1)
        _, group = profile[known].unique(dim=0, return_inverse=True)
        first: dict[int, tuple[int, int]] = {}
        for here, number in zip(apart[known].tolist(), group.tolist(), strict=True):
            there = first.setdefault(number, tuple(here))
            if [abs(n) for n in there] != [abs(n) for n in here]:
                return [there, tuple(here)]
        return []


def window(seen: Tensor, share: float, *, oblong: bool) -> Window | None:
    """The window by all of whose differences a bias ``[heads, seq, seq]`` goes, if it does.

    ``seen`` is the bias less that of each query's own key, ``share`` what numbers of pairs that lie
    alike may be apart, of the largest of their head. All queries give one number to a class token,
    and it gives one to all keys. A bias of rows alone cannot be told from one that wraps around.
    """
    room = share * seen.nan_to_num(torch.nan, 0.0, 0.0).abs().amax((1, 2))[:, None]
    for before, sides in _shapes(seen.shape[-1], oblong):
        least, most = _ends(seen[:, before:, before:], sides)
        off = _apart(most, least)
        for end in (seen[:, :1, 1:], seen[:, 1:, :1]) if before else ():
            lowest, highest = (each.unsqueeze(1) for each in extremes(end.flatten(1), 1))
            off = torch.cat((off, _apart(lowest, highest)), 1)
        if bool((off <= room).all()) and _knows_all(most, room, sides):
            return Window(sides, before, off.max().item(), seen)
    return None


def _shapes(count: int, oblong: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Squares, also behind a class token, and oblong windows of two or three sides."""
    for before in (0, 1):
        side = isqrt(count - before)
        if side >= 3 and side**2 == count - before:
            yield before, (side, side)
    if oblong and count <= LARGEST_OBLONG:
        divisors = [n for n in range(1, count) if count % n == 0]
        for first, second in product(divisors, divisors[1:]):
            third = count // (first * second)
            if third > 1 and first * second * third == count:
                yield 0, (first, second, third)[first == 1 :]


def _knows_all(profile: Tensor, room: Tensor, sides: tuple[int, ...]) -> bool:
    """Whether numbers by differences along some axes change with each that has any."""
    numbers = profile.unflatten(1, [2 * n - 1 for n in sides])
    ends = [extremes(numbers, 1 + axis) for axis in range(len(sides))]
    room = room.view(-1, *(1 for _ in sides[1:]))
    return all(bool((most - least > room).any()) for least, most in ends)


def _ends(patches: Tensor, sides: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The least and the largest number of pairs that lie alike, ``[heads, differences]``.

    Of those that are seen; −∞ where none is.
    """
    grid = torch.cartesian_prod(*(torch.arange(n) for n in sides))
    steps, alike = grid[:, None] - grid, torch.zeros(1, dtype=torch.long)
    for axis, n in enumerate(sides):
        alike = alike * (2 * n - 1) + steps[..., axis] + n - 1
    alike, numbers = alike.flatten().expand(len(patches), -1), patches.flatten(1)
    kinds = prod(2 * n - 1 for n in sides)
    blank = patches.new_full((len(patches), kinds), -torch.inf)
    most = blank.scatter_reduce(1, alike, numbers, "amax")
    least = -blank.scatter_reduce(1, alike, _turned(numbers), "amax")
    return least.masked_fill(least == torch.inf, -torch.inf), most


def extremes(numbers: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The least and the largest along an axis of those that are seen; −∞ where none is."""
    least, most = -_turned(numbers).amax(axis), numbers.amax(axis)
    return least.masked_fill(least == torch.inf, -torch.inf), most


def _turned(numbers: Tensor) -> Tensor:
    """Times −1, those that are hidden left as they are."""
    return torch.where(numbers == -torch.inf, numbers, -numbers)


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """How far numbers are apart; those that are hidden alike are not."""
    return (one - other).abs().masked_fill(one == other, 0.0)
