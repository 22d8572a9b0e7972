"""Which bias scores receive: ALiBi's slopes, T5's buckets, or a rule of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isqrt

import torch
from torch import Tensor, nn

from posenc.audit.identity import masks
from posenc.numerics import slopes
from posenc.numerics.buckets import t5_buckets


@dataclass(frozen=True)
class Linear:
    """A bias that falls linearly with distance.

    Attributes:
        fall: By how much it falls from one key to the one before, for each head.
        rule: ``alibi``, ``geometric``, ``alibi in another order`` or empty.
        most: The exponent of the last slope, 8 in the paper.
        off: Largest relative difference to the nearest rule.
    """

    fall: Tensor
    rule: str
    most: float
    off: float

    @property
    def said(self) -> str:
        """One line."""
        rules = {
            "alibi": f"ALiBi for {len(self.fall)} heads",
            "geometric": f"ALiBi with purely geometric slopes for {len(self.fall)} heads",
        }
        most = f", slopes to 2^−{self.most:g}" if self.most != 8 else ""
        return rules[self.rule] + most if self.rule in rules else ""

    @property
    def ours(self) -> str:
        """Ours that it equals, as Python; a rule that is known has one."""
        heads = len(self.fall)
        if (self.rule, self.most) == ("alibi", 8):
            return f"posenc.recipes.bloom({'' if heads == 32 else heads})"
        rule = ", slopes='geometric'" if self.rule == "geometric" else ""
        most = f", alibi_bias_max={self.most:g}" if self.most != 8 else ""
        return f"posenc.ALiBi({heads}{rule}{most})"


def linear(seen: Tensor, given: Tensor) -> Linear | None:
    """The slopes of a bias ``[heads, seq, seq]`` that is 0 at each query's own key, if linear.

    ``given`` is the same as it came.
    """
    last = seen[:, -1]
    seq = seen.shape[-1]
    fall = last[:, -1] - last[:, -2]
    wanted = -fall[:, None] * torch.arange(seq - 1, -1, -1, dtype=torch.float64)
    if fall.abs().max() == 0 or not torch.isfinite(last).all():
        return None
    off, size = (last - wanted).abs().amax(1), wanted.abs().amax(1)
    if bool((off > room(given, wanted) * size).any()):  # a slope may be 128 times another
        return None
    return _ruled(fall, room(fall, None, 2**-8, 2**-10, 1e-4))


def room(
    given: Tensor,
    line: Tensor | None,
    bfloat16: float = 0.02,
    float16: float = 2.0**-9,
    float32: float = 1e-4,
) -> float:
    """What numbers may be away from a line, as a share: much only where they were rounded, which
    may be in position, slope and product.

    A line that a 16-bit dtype holds, as few whole numbers of steps of a power of two, is not
    rounded by it.

    Example:
        >>> far = torch.arange(300.0)
        >>> room(far, far), room((far / 3).bfloat16(), far / 3)
        (0.0001, 0.02)
    """
    rounded = of_16_bits(given) - (set() if line is None else of_16_bits(line))
    return bfloat16 if torch.bfloat16 in rounded else float16 if rounded else float32


HIDDEN = 1000.0
"""Numbers so far below the line hide a key, as -10000 does."""


@dataclass(frozen=True)
class Parting:
    """Where a bias leaves the line that it follows for near keys.

    Attributes:
        distance: The nearest key that is away from it.
        head: Of which head.
        given: The bias there, less that of the query's own key.
        wanted: What slope × distance would be.
        length: How many keys were looked at.
    """

    distance: int
    head: int
    given: float
    wanted: float
    length: int


def parting(row: Tensor, fall: Tensor) -> Parting | None:
    """Where a row of a bias ``[heads, keys]`` leaves -fall · distance, if it does.

    The query stands at the last key. Keys that are hidden are not compared.
    """
    made = row.double()
    seen, keys = made - made[:, -1:], made.shape[1]
    wanted = -fall[:, None] * torch.arange(keys - 1, -1, -1, dtype=torch.float64)
    hidden = ~torch.isfinite(seen) | (seen < wanted.amin(1, keepdim=True) - HIDDEN)
    largest = made.masked_fill(hidden, 0.0).abs().amax(1, keepdim=True)
    compared = row[:, ~hidden.any(0)], wanted[:, ~hidden.any(0)]
    size = room(*compared) * wanted.abs() + room(*compared, 2.0**-7, 2.0**-10, 1e-6) * largest
    away = ((seen - wanted).abs() > size) & ~hidden
    if not bool(away.any()):
        return None
    key = int(away.any(0).nonzero().max())
    head = int(away[:, key].nonzero()[0])
    given, line = seen[head, key].item(), wanted[head, key].item()
    return Parting(keys - 1 - key, head, given, line, keys)


def of_16_bits(numbers: Tensor) -> set[torch.dtype]:
    """The 16-bit dtypes that hold all numbers, whatever their own is.

    Example:
        >>> of_16_bits(torch.tensor([0.5, 257.0]))
        {torch.float16}
    """
    known = (torch.bfloat16, torch.float16)
    wide = numbers.double()
    return {dtype for dtype in known if bool((numbers.to(dtype).double() == wide).all())}


def knows_later_keys(seen: Tensor, given: Tensor, fall: Tensor) -> bool:
    """Whether keys after the query are hidden, or receive what implementations give them.

    That is -slope · |distance|, slope · (key - query), which goes on growing, or nothing; all the
    same where a causal mask hides them. ``given`` is the bias as it came.
    """
    seq = seen.shape[-1]
    index = torch.arange(seq, dtype=torch.float64)
    ahead = (index[None] - index[:, None]).clamp(min=0) * fall[:, None, None]
    later = (ahead > 0) & torch.isfinite(seen) & (seen > -HIDDEN)
    most = room(given, ahead) * ahead.amax((1, 2), keepdim=True)
    return any(
        bool(((seen - sign * ahead).abs() <= most)[later].all()) for sign in (-1.0, 1.0, 0.0)
    )


def _ruled(fall: Tensor, tolerance: float) -> Linear:
    """The rule of these slopes; one rounded to bfloat16 is 2^-8 off at most."""
    heads, best = len(fall), ("", 8.0, float("inf"))
    for most in (8.0, 4.0, 16.0):
        for name, rule in (("alibi", slopes.alibi), ("geometric", slopes.geometric)):
            ours = torch.tensor(rule(heads, most), dtype=torch.float64)
            off = (fall.abs() / ours - 1).abs().max().item()
            if off < best[2]:
                best = name, most, off
    if best[2] < tolerance:
        return Linear(fall, *best)
    ours = torch.tensor(slopes.alibi(heads), dtype=torch.float64)
    unordered = (fall.abs().sort().values / ours.sort().values - 1).abs().max().item()
    name = "alibi in another order" if unordered < tolerance else ""
    return Linear(fall, name, 8.0, best[2])


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
class Buckets:
    """A bias that is looked up by T5's buckets.

    Attributes:
        index: The row of the table that each distance −n … n reads; −1 where keys are hidden.
        rows: Number of rows.
        kind: ``t5`` with its numbers, ``clipped`` of one row a distance, or what slipped.
        max_distance: Of the fitted rule; of one row a distance, the last that has its own.
        bidirectional: Of the fitted rule.
        off: At how many distances another row is read than T5 reads.
    """

    index: Tensor
    rows: int
    kind: str
    max_distance: int
    bidirectional: bool
    off: int
    first_off: int = 0

    @property
    def knows_later_keys(self) -> bool:
        """Whether keys after the query are hidden, or read the rows that T5's read."""
        n = (len(self.index) + 1) // 2
        later = self.index[: n - 1]
        return self.bidirectional or bool((later <= 0).all())

    @property
    def compared(self) -> int:
        """How many distances are held against T5's, which are none that are hidden."""
        n = (len(self.index) + 1) // 2
        asked = self.index if self.bidirectional else self.index[n - 1 :]
        return int((asked >= 0).sum())

    @property
    def said(self) -> str:
        """One line."""
        if self.kind == "clipped":
            past = "" if self.bidirectional else " to the past"
            return f"a learned bias, one number for each distance{past} up to {self.max_distance}"
        sides = "both directions" if self.bidirectional else "the past"
        return (
            f"T5's bias, {self.rows} buckets for {sides}, maximal distance {self.max_distance}"
            if self.kind == "t5"
            else ""
        )

    def ours(self, heads: int) -> str:
        """Ours that it equals for so many heads, as Python."""
        if (self.rows, self.max_distance) == (32, 128):
            said = [] if heads == 12 else [str(heads)]
            said += [] if self.bidirectional else ["decoder=True"]
            return f"posenc.recipes.t5({', '.join(said)})"
        return (
            f"posenc.T5Bias({heads}, {self.rows}, {self.max_distance}, "
            f"bidirectional={self.bidirectional})"
        )


def looked_up(square: Tensor, module: object) -> tuple[Tensor, int] | None:
    """For the distances −(n − 1) … n − 1, which row of an embedding the bias reads, and how many
    rows it has; None if it reads none, or by more than distance. Distances at which all heads are
    hidden read the row −1.

    ``square`` is the bias ``[heads, n, n]`` of a module with a table ``[rows, heads]``.
    """
    if not isinstance(module, nn.Module):
        return None
    n = square.shape[-1]
    profile = torch.cat((square[:, 0, 1:].flip(1), square[:, :, 0]), 1).T  # from −(n − 1) on
    away = masks.hidden(profile.T[:, None])[:, 0].all(0)
    if bool(away[n - 1 : n + 1].any()):  # nothing near is left to be known by
        return None
    for weight in module.parameters():
        if weight.ndim != 2 or weight.shape[0] < 4:
            continue
        for table in (weight, weight.T):
            if table.shape[1] != len(square):
                continue
            gaps = torch.cdist(profile.masked_fill(away[:, None], 0.0), table.detach().double())
            least, index = gaps.min(1)
            least, index = least.masked_fill(away, 0.0), index.masked_fill(away, -1)
            if bool((least < 1e-4 * table.abs().max().item()).all()):
                if len(profile) != 2 * n - 1 or _strays(square, profile.T, away):
                    return None
                return index, len(table)
    return None


def _strays(square: Tensor, profile: Tensor, away: Tensor) -> bool:
    """Whether a square reads otherwise than its first row and column, where keys are seen."""
    n = square.shape[-1]
    apart = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    off = (square - profile[:, apart]).abs() > 1e-4 * profile[:, ~away].abs().max()
    return bool((off & ~masks.hidden(square) & ~away[apart]).any())


def buckets(index: Tensor, rows: int) -> Buckets:
    """The rule by which distances read rows, held against T5's."""
    n = (len(index) + 1) // 2
    distance = torch.arange(-(n - 1), n)
    best: tuple[int, str, int, bool, int] | None = None
    for kind, bidirectional, most in _rules(rows):
        sign = -1 if kind == "turned" else 1
        ours = t5_buckets(sign * distance, rows, most, bidirectional)
        wrong = (ours != index) & (index >= 0)
        if not bidirectional:
            wrong = wrong & (distance >= 0)  # what a causal mask hides does not count
        off = int(wrong.sum())
        first = int(distance[wrong].abs().min()) if off else 0
        if best is None or off < best[0]:
            best = off, kind, most, bidirectional, first
    assert best is not None
    off, kind, most, bidirectional, first = best
    if off and (found := _one_a_distance(index, rows)) is not None:
        return found
    return Buckets(index, rows, kind if off == 0 else "off", most, bidirectional, off, first)


def _one_a_distance(index: Tensor, rows: int) -> Buckets | None:
    """Rows in the order of distances, the first and the last of them for all that lie beyond.

    What a causal mask hides reads any row, where keys up to the query have all that there are.
    """
    n = (len(index) + 1) // 2
    distance, own = torch.arange(-(n - 1), n), int(index[n - 1])
    for sign in (1, -1):
        same = ((own + sign * distance).clamp(0, rows - 1) == index) | (index < 0)
        bidirectional = 0 < own < rows - 1
        if bool((same if bidirectional else same[n - 1 :]).all()):
            most = max(own, rows - 1 - own)
            return Buckets(index, rows, "clipped", most, bidirectional, 0)
    return None


def _rules(rows: int) -> Iterator[tuple[str, bool, int]]:
    for kind in ("t5", "turned"):
        for bidirectional in (True, False):
            side = rows // 2 if bidirectional else rows
            if (bidirectional and rows % 2) or side < 2:
                continue
            for most in (128, 64, 256, 32, 512, 1024, 20, 16, 800, 2048):
                if most > side // 2:
                    yield kind, bidirectional, most


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
