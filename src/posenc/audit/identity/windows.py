"""Along which differences a bias goes: of one axis, or of the sides of a window."""

from dataclasses import dataclass
from itertools import product
from math import isqrt

import torch
from torch import Tensor


def along(seen: Tensor) -> tuple[Tensor, Tensor]:
    """For each head, how far numbers of one diagonal are apart, and how large they are.

    Of keys before the query, in a bias ``[heads, seq, seq]`` with −∞ where keys are hidden.

    Example:
        >>> along(torch.tensor([[[0.0, 9.0, 9.0], [1.0, 0.0, 9.0], [2.0, 1.5, 0.0]]]))
        (tensor([0.5000], dtype=torch.float64), tensor([2.]))
    """
    seq = seen.shape[-1]
    each = torch.zeros(len(seen), dtype=torch.float64)
    for back in range(1, seq):
        least, most = extremes(seen.diagonal(-back, 1, 2), 1)
        each = each.maximum((most - least).nan_to_num(0, 0, 0))
    below = seen[:, torch.ones(seq, seq, dtype=torch.bool).tril()].nan_to_num(0, 0, 0)
    return each, below.abs().amax(1)


@dataclass(frozen=True)
class Square:
    """Tokens of a square, row after row, whose bias goes by differences of rows and of columns.

    Attributes:
        side: How many tokens a row has.
        before: How many stand before the first row; a class token is one.
        off: How far numbers of pairs that lie alike are apart.
        seen: The bias less that of each query's own key; −∞ where keys are hidden, of which
            nothing is told.
    """

    side: int
    before: int
    off: float
    seen: Tensor

    @property
    def said(self) -> str:
        """One line."""
        behind = " behind a class token" if self.before else ""
        return (
            f"of {self.side} × {self.side} tokens, row after row{behind}: it depends on the "
            "differences of rows and of columns alone"
            + (", of keys that it does not hide" if bool(self.seen.isneginf().any()) else "")
        )


def on_square(seen: Tensor, share: float) -> Square | None:
    """The square on which a bias ``[heads, seq, seq]`` goes by rows and columns, if it does.

    All queries give one number to a class token, and it gives one to all keys. A bias of rows
    alone, or of columns alone, is none: it cannot be told from one that wraps around.

    Args:
        seen: The bias less that of each query's own key; −∞ where keys are hidden.
        share: What numbers of pairs that lie alike may be apart, of the largest of their head.

    Example:
        >>> row, column = torch.arange(9) // 3, torch.arange(9) % 3
        >>> apart = (row[:, None] - row).abs() + 2.0 * (column[:, None] - column).abs()
        >>> on_square(-apart[None], 1e-4).side
        3
    """
    room = share * seen.nan_to_num(torch.nan, 0.0, 0.0).abs().amax((1, 2))[:, None]
    for before in (0, 1):
        side = isqrt(seen.shape[-1] - before)
        if side < 3 or side**2 != seen.shape[-1] - before:
            continue
        least, most = _ends(seen[:, before:, before:], side)
        off = _apart(most, least)
        if before:
            for end in (seen[:, :1, 1:].flatten(1), seen[:, 1:, :1].flatten(1)):
                lowest, highest = (each.unsqueeze(1) for each in extremes(end, 1))
                off = torch.cat((off, _apart(lowest, highest)), 1)
        if bool((off <= room).all()) and _knows_all(most, room, [1, 2 * side - 1, 2 * side - 1]):
            return Square(side, before, off.max().item(), seen)
    return None


def shared(square: Square) -> list[tuple[int, int]]:
    """Two differences of rows and of columns that receive one number in every head.

    Empty where none do but those that differ in signs alone.
    """
    side, before = square.side, square.before
    profile = _ends(square.seen[:, before:, before:], side)[1].T.contiguous()
    reach = torch.arange(len(profile))
    apart = torch.stack((reach // (2 * side - 1), reach % (2 * side - 1)), 1) - (side - 1)
    known = profile.isfinite().any(1)
    profile, apart = profile[known], apart[known]
    _, group = profile.unique(dim=0, return_inverse=True)
    first: dict[int, tuple[int, int]] = {}
    for each, number in zip(apart.tolist(), group.tolist(), strict=True):
        down, along = first.setdefault(number, (each[0], each[1]))
        if (abs(down), abs(along)) != (abs(each[0]), abs(each[1])):
            return [(down, along), (each[0], each[1])]
    return []


def window(seen: Tensor, share: float) -> tuple[int, ...] | None:
    """Sides of two or three axes, by all of whose differences a bias goes; None for none.

    Example:
        >>> row, column = torch.arange(8) // 4, torch.arange(8) % 4
        >>> apart = (row[:, None] - row).abs() + 2.0 * (column[:, None] - column).abs()
        >>> window(-apart[None], 1e-4)
        (2, 4)
    """
    count = seen.shape[-1]
    room = share * seen.nan_to_num(torch.nan, 0.0, 0.0).abs().amax((1, 2))[:, None]
    divisors = [n for n in range(1, count) if count % n == 0 and count <= LARGEST_WINDOW]
    for first, second in product(divisors, divisors[1:]):
        third = count // (first * second)
        if third < 2 or first * second * third != count:
            continue
        sides = first, second, third
        grid = torch.cartesian_prod(*(torch.arange(n) for n in sides))
        steps = grid[:, None] - grid + torch.tensor(sides) - 1
        reach = [2 * n - 1 for n in sides]
        alike = (steps[..., 0] * reach[1] + steps[..., 1]) * reach[2] + steps[..., 2]
        least, most = _ends_of(seen, alike, reach[0] * reach[1] * reach[2])
        if bool((_apart(most, least) <= room).all()) and _knows_all(most, room, reach):
            return sides[first == 1 :]
    return None


LARGEST_WINDOW = 1024
"""Tokens of windows whose sides are looked for."""


def _knows_all(profile: Tensor, room: Tensor, reach: list[int]) -> bool:
    """Whether numbers by differences along some axes change with each that has any."""
    numbers = profile.unflatten(1, reach)
    ends = [extremes(numbers, 1 + axis) for axis, n in enumerate(reach) if n > 1]
    room = room.view(-1, *(1 for _ in reach[1:]))
    return all(bool((most - least > room).any()) for least, most in ends)


def _ends(patches: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """The least and the largest number of pairs that lie alike, ``[heads, differences]``."""
    index, reach = torch.arange(side * side), 2 * side - 1
    rows, columns = index // side, index % side
    down, along = (axis[:, None] - axis + side - 1 for axis in (rows, columns))
    return _ends_of(patches, down * reach + along, reach**2)


def _ends_of(patches: Tensor, alike: Tensor, kinds: int) -> tuple[Tensor, Tensor]:
    """The least and the largest number of each kind of pairs, ``[heads, kinds]``.

    Of those that are seen; −∞ where none is.
    """
    alike, numbers = alike.flatten().expand(len(patches), -1), patches.flatten(1)
    blank = patches.new_full((len(patches), kinds), -torch.inf)
    most = blank.scatter_reduce(1, alike, numbers, "amax")
    least = -blank.scatter_reduce(1, alike, _turned(numbers), "amax")
    return least.masked_fill(least == torch.inf, -torch.inf), most


def extremes(numbers: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The least and the largest along an axis of those that are seen; −∞ where none is."""
    least, most = numbers.amin(axis), numbers.amax(axis)
    if bool(least.isneginf().any()):
        least = -_turned(numbers).amax(axis)
    return least.masked_fill(least == torch.inf, -torch.inf), most


def _turned(numbers: Tensor) -> Tensor:
    """Times −1, those that are hidden left as they are."""
    return torch.where(numbers == -torch.inf, numbers, -numbers)


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """How far numbers are apart; those that are hidden alike are not."""
    return (one - other).abs().masked_fill(one == other, 0.0)
