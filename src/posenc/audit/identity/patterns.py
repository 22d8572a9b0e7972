"""Which keys a bias hides, and by which differences it goes: along a line, or in a window."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf, isqrt, prod

import torch
from torch import Tensor

FAR_BELOW = 5000.0  # numbers so far below a head's largest leave a key no weight, as -10000 does
NO_EARLIER = "hides every key before each query"
LARGEST_OBLONG = 1024  # tokens of oblong windows whose sides are looked for


# What it hides: later keys, those beyond a window, or others than a mask should.


@dataclass(frozen=True)
class Mask:
    """What a bias hides."""

    said: str  # which keys, in words that follow "it"
    slip: bool = False  # whether no mask is meant to hide these
    doubtful: bool = False  # whether few are, so that it is worth knowing


def hidden(given: Tensor) -> Tensor:
    """Which keys a bias ``[heads, q_len, k_len]`` leaves no weight.

    Those of a bias that falls so far step by step are not hidden, but far; and the largest of a
    row are not, where others of it are as far below them.
    """
    made = given.double()
    top = made.masked_fill(~made.isfinite(), -1e8).amax((1, 2), keepdim=True)
    low, lost = made < top - FAR_BELOW, made < -1e8
    between = low.logical_not() & (made < top - FAR_BELOW / 2)
    low = low & ~between.any(2, keepdim=True).any(1, keepdim=True)
    best = made >= made.amax(2, keepdim=True) - FAR_BELOW
    return lost | low & (~best | best.all(2, keepdim=True))


def mask(away: Tensor) -> Mask:
    """What is hidden of a square ``[heads, n, n]``.

    Some heads may see later keys alone where others see earlier ones.
    """
    if bool((away == away[:1]).all()):
        return _of_one(away[0])
    each = [_of_one(head) for head in away]
    others = any("after each query" in found.said for found in each)
    for number, found in enumerate(each):
        if found.slip and not (others and found.said == NO_EARLIER):
            return Mask(f"{found.said} (in head {number})", slip=True)
    return Mask("hides other keys in each head", doubtful=any(x.slip or x.doubtful for x in each))


def _of_one(away: Tensor) -> Mask:
    """The same of one head."""
    if not bool(away.any()):
        return Mask("hides no key")
    last = len(away) - 1
    index = torch.arange(len(away))
    apart = index[:, None] - index
    seen = apart[~away].unique()  # the distances that are, if distance is all that counts
    if bool((torch.isin(apart, seen) & away).any()):
        if none := away.all(1).nonzero().flatten().tolist():
            return Mask(f"hides every key of the query at {none[0]}", slip=True)
        return Mask("hides keys by their places, as blocks do")
    if 0 not in seen:
        others = len(seen) < 2 * last
        beside = "and others beside it" if others else "and no others"
        return Mask(f"hides each query's own key, {beside}", slip=others, doubtful=not others)
    back, ahead = int(seen.max()), -int(seen.min())
    if back == ahead == 0:
        return Mask("hides all keys but each query's own", doubtful=True)
    if back == 0:
        return Mask(NO_EARLIER, slip=True)
    if len(seen) <= back + ahead:
        return Mask("hides some keys by their distance, between others")
    sides = [f"more than {back} before each query"] if back < last else []
    if ahead < last:
        sides.append(f"more than {ahead} after each query" if ahead else "after each query")
    leaks = back == last and 0 < ahead < last
    return Mask(f"hides the keys {' and '.join(sides)}, and no others", slip=leaks)


# By which differences it goes.


def spread(numbers: Tensor, axis: int) -> Tensor:
    """How far numbers along an axis are apart, those apart that are hidden at −∞."""
    least = numbers.masked_fill(numbers == -inf, inf).amin(axis)
    return (numbers.amax(axis) - least).clamp(min=0)


def along(seen: Tensor) -> tuple[Tensor, Tensor]:
    """How far numbers of one diagonal of each head are apart below the main one, and how large."""
    seq = seen.shape[-1]
    _, off = _by_difference(seen, (seq,))
    return off[:, seq:].nan_to_num(0, 0).amax(1), seen.nan_to_num(0, 0, 0).tril().abs().amax((1, 2))


@dataclass(frozen=True)
class Window:
    """Tokens of a window, row after row, whose bias goes by differences along its sides."""

    sides: tuple[int, ...]
    before: int  # how many tokens stand before the first row; a class token is one
    off: float  # how far numbers of pairs that lie alike are apart
    profile: Tensor  # the number of each difference, ``[heads, *differences]``; −∞ where hidden
    hides: bool  # whether some keys are hidden

    @property
    def is_square(self) -> bool:
        """Whether it has two equal sides."""
        return len(self.sides) == 2 and len(set(self.sides)) == 1

    @property
    def said(self) -> str:
        size = " × ".join(map(str, self.sides))
        if not self.is_square:
            return f"of {size} tokens: it depends on the differences along each axis alone"
        behind = " behind a class token" if self.before else ""
        return (
            f"of {size} tokens, row after row{behind}: it depends on the differences of rows "
            f"and of columns alone{', of keys that it does not hide' * self.hides}"
        )

    def shared(self) -> list[tuple[int, int]]:
        """Two differences that are unlike but for signs, and receive one number in every head."""
        profile = self.profile.flatten(1).T.contiguous()
        apart = torch.cartesian_prod(*(torch.arange(1 - n, n) for n in self.sides))
        known = profile.isfinite().any(1)
        first: dict[tuple[float, ...], tuple[int, int]] = {}
        for here, numbers in zip(apart[known].tolist(), profile[known].tolist(), strict=True):
            there = first.setdefault(tuple(numbers), tuple(here))
            if [abs(n) for n in there] != [abs(n) for n in here]:
                return [there, tuple(here)]
        return []


def window(seen: Tensor, share: float, *, oblong: bool) -> Window | None:
    """The window by all of whose differences a bias ``[heads, seq, seq]`` goes, if it does.

    Numbers of pairs that lie alike may be apart by a share of the largest of their head. All
    queries give one number to a class token, and it gives one to all keys.
    """
    room = share * seen.nan_to_num(torch.nan, 0.0, 0.0).abs().amax((1, 2))[:, None]
    for before, sides in _shapes(seen.shape[-1], oblong):
        profile, off = _by_difference(seen[:, before:, before:], sides)
        ends = (seen[:, :1, 1:], seen[:, 1:, :1]) if before else ()
        off = torch.cat([off, *(spread(end.flatten(1), 1)[:, None] for end in ends)], 1)
        tells = (spread(profile, 1 + axis).flatten(1) > room for axis in range(len(sides)))
        if bool((off <= room).all()) and all(bool(axis.any()) for axis in tells):
            return Window(sides, before, off.max().item(), profile, bool(seen.isneginf().any()))
    return None


def _shapes(count: int, oblong: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Squares, also behind a class token, and oblong windows of two or three sides."""
    for before in (0, 1):
        side = isqrt(count - before)
        if side >= 3 and side**2 == count - before:
            yield before, (side, side)
    if oblong and count <= LARGEST_OBLONG:
        divisors = [n for n in range(1, count) if count % n == 0]
        for sides in product(divisors, divisors[1:], divisors[1:]):
            if prod(sides) == count:
                yield 0, sides[1:] if sides[0] == 1 else sides


def _by_difference(patches: Tensor, sides: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The largest number of each difference, and how far those of one difference are apart."""
    grid = torch.cartesian_prod(*(torch.arange(n) for n in sides)).view(-1, len(sides))
    steps, alike = grid[:, None] - grid, torch.zeros(1, dtype=torch.long)
    for axis, n in enumerate(sides):
        alike = alike * (2 * n - 1) + steps[..., axis] + n - 1
    shape = [2 * n - 1 for n in sides]
    alike, numbers = alike.flatten().expand(len(patches), -1), patches.flatten(1)
    blank = patches.new_full((len(patches), prod(shape)), -inf)
    most = blank.scatter_reduce(1, alike, numbers, "amax")
    least = (-blank).scatter_reduce(1, alike, numbers.masked_fill(numbers == -inf, inf), "amin")
    return most.unflatten(1, shape), (most - least).clamp(min=0)
