"""Which bias scores receive: ALiBi's slopes, those of another rule, or rows of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from torch import Tensor, nn

from posenc.audit.identity.patterns import hidden
from posenc.encodings.scores import ALiBi, T5Bias
from posenc.numerics import slopes
from posenc.numerics.buckets import t5_buckets

HIDDEN = 1000.0  # numbers so far below the line hide a key, as -10000 does
RULES: tuple[Literal["authors", "geometric"], ...] = ("authors", "geometric")  # of slopes
DISTANCES = (128, 64, 256, 32, 512, 1024, 20, 16, 800, 2048)  # maximal ones, most usual first


# A line, as ALiBi's.


@dataclass(frozen=True)
class Linear:
    """A bias that falls linearly with distance."""

    fall: Tensor  # by how much it falls from one key to the one before, for each head
    rule: str  # "authors", "geometric", "reordered" or empty
    off: float  # largest relative difference to the nearest rule
    said: str = ""  # one line
    ours: str = ""  # ours that it equals, as Python


def linear(seen: Tensor, given: Tensor) -> Linear | None:
    """The slopes of a bias ``[heads, seq, seq]``, as it is ``given`` and less each query's own."""
    last = seen[:, -1]
    fall = last[:, -1] - last[:, -2]
    wanted = -fall[:, None] * torch.arange(seen.shape[-1] - 1, -1, -1)
    if fall.abs().max() == 0 or not torch.isfinite(last).all():
        return None
    off, size = (last - wanted).abs().amax(1), wanted.abs().amax(1)
    if bool((off > room(given, wanted) * size).any()):  # a slope may be 128 times another
        return None
    best = min(_slopes_in_use(fall), key=lambda each: each.off)
    tolerance = rounding(fall) + 1e-4
    if best.off < tolerance:
        return best
    unordered = _off(fall.abs().sort().values, sorted(slopes.alibi(len(fall)))) < tolerance
    return Linear(fall, "reordered" * unordered, best.off)


def _slopes_in_use(fall: Tensor) -> Iterator[Linear]:
    """The slopes of ALiBi's authors and purely geometric ones, to each last exponent in use."""
    heads = len(fall)
    for most, rule in product((8.0, 4.0, 16.0), RULES):
        ours = ALiBi(heads, slopes=rule, alibi_bias_max=most)
        words = "ALiBi" + " with purely geometric slopes" * (rule == "geometric")
        said = f"{words} for {heads} heads" + f", slopes to 2^−{most:g}" * (most != 8)
        python = f"posenc.{ours!r}".replace("heads=", "")
        if (rule, most) == ("authors", 8.0):
            python = f"posenc.recipes.bloom({'' if heads == 32 else heads})"
        yield Linear(fall, rule, _off(fall.abs(), ours.slopes), said, python)


def _off(fall: Tensor, slopes: Sequence[float]) -> float:
    """The largest relative difference of slopes."""
    return (fall / torch.tensor(slopes, dtype=torch.float64) - 1).abs().max().item()


def room(given: Tensor, line: Tensor | None) -> float:
    """What numbers may be away from a line, as a share: position, slope and product are rounded."""
    return 5 * rounding(given, line) + 1e-4


def rounding(given: Tensor, line: Tensor | None = None) -> float:
    """What one rounding costs, as a share; nothing where it was no dtype of 16 bits.

    A line that such a dtype holds, as few whole numbers of steps of a power of two, is not rounded.
    """
    rounded = of_16_bits(given) - (set() if line is None else of_16_bits(line))
    return max((torch.finfo(dtype).eps / 2 for dtype in rounded), default=0.0)


def of_16_bits(numbers: Tensor) -> set[torch.dtype]:
    """The 16-bit dtypes that hold all numbers, whatever their own is."""
    known, wide = (torch.bfloat16, torch.float16), numbers.double()
    return {dtype for dtype in known if bool((numbers.to(dtype).double() == wide).all())}


def parting(row: Tensor, distance: Tensor, fall: Tensor) -> tuple[int, int, float, float] | None:
    """Where a row ``[heads, keys]`` leaves its line: distance, head, and the bias of both there."""
    if 0 not in distance:  # the query's own key is hidden
        return None
    made, wanted = row.double(), -fall[:, None] * distance
    seen, largest = made - made[:, -1:], made.abs().amax(1, keepdim=True)
    size = room(row, wanted) * wanted.abs() + (2 * rounding(row, wanted) + 1e-6) * largest
    away = (seen - wanted).abs() > size
    if not bool(away.any()):
        return None
    key = int(away.any(0).nonzero().max())
    head = int(away[:, key].nonzero()[0])
    return int(distance[key]), head, seen[head, key].item(), wanted[head, key].item()


def knows_later_keys(seen: Tensor, given: Tensor, fall: Tensor) -> bool:
    """Whether keys after the query are hidden, or receive what implementations leave to a mask.

    That is −slope · |distance|, slope · (key − query), or nothing.
    """
    index = torch.arange(seen.shape[-1], dtype=torch.float64)
    ahead = (index[None] - index[:, None]).clamp(min=0) * fall[:, None, None]
    later = (ahead > 0) & torch.isfinite(seen) & (seen > -HIDDEN)
    most = room(given, ahead) * ahead.amax((1, 2), keepdim=True)
    offs = ((seen - sign * ahead).abs() <= most for sign in (-1.0, 1.0, 0.0))
    return any(bool(near[later].all()) for near in offs)


# Rows of a table, as T5's buckets.


@dataclass(frozen=True)
class Buckets:
    """A bias that is looked up by T5's buckets, or by one row a distance."""

    index: Tensor  # the row that each distance −n … n reads; −1 where keys are hidden
    rows: int
    kind: str  # "t5", "clipped" of one row a distance, "turned" or "off"
    max_distance: int  # of the fitted rule; of one row a distance, the last that has its own
    bidirectional: bool
    off: int = 0  # at how many distances another row is read than T5 reads
    first_off: int = 0  # the nearest of them
    compared: int = 0  # how many distances were held against T5's

    @property
    def past(self) -> Tensor:
        """The rows of keys up to the query's."""
        return self.index[len(self.index) // 2 :]

    @property
    def later(self) -> Tensor:
        """The rows of the query's key and those after it."""
        return self.index[: len(self.index) // 2 + 1].flip(0)

    @property
    def knows_later_keys(self) -> bool:
        """Whether keys after the query are hidden, or read the rows that T5's read."""
        return self.bidirectional or bool((self.later[1:] <= 0).all())

    @property
    def said(self) -> str:
        both, most = self.bidirectional, self.max_distance
        if self.kind == "clipped":
            past = "" if both else " to the past"
            return f"a learned bias, one number for each distance{past} up to {most}"
        sides = "both directions" if both else "the past"
        told = f"T5's bias, {self.rows} buckets for {sides}, maximal distance {most}"
        return told if self.kind == "t5" else ""

    def ours(self, heads: int) -> str:
        """Ours that it equals for so many heads, as Python."""
        if (self.rows, self.max_distance) != (32, 128):
            ours = T5Bias(heads, self.rows, self.max_distance, self.bidirectional)
            return f"posenc.{ours!r}".replace("heads=", "")
        said = [str(heads)] * (heads != 12) + ["decoder=True"] * (not self.bidirectional)
        return f"posenc.recipes.t5({', '.join(said)})"


def looked_up(square: Tensor, module: nn.Module) -> tuple[Tensor, int] | None:
    """The row of a module's table ``[rows, heads]`` that its bias ``[heads, n, n]`` reads at each
    distance −(n − 1) … n − 1, −1 where all heads hide it, and how many rows there are.
    """
    n = square.shape[-1]
    if square.shape[-2] != n:
        return None
    profile = torch.cat((square[:, 0, 1:].flip(1), square[:, :, 0]), 1).T  # from −(n − 1) on
    away = hidden(profile.T[:, None])[:, 0].all(0)
    if bool(away[n - 1 : n + 1].any()):  # nothing near is left to be known by
        return None
    alike = profile.T[:, torch.arange(n)[:, None] - torch.arange(n) + n - 1]
    tables = (t for p in module.parameters() if p.ndim == 2 and len(p) > 3 for t in (p, p.T))
    for table in (t.detach().double() for t in tables if t.shape[1] == len(square)):
        least, index = torch.cdist(profile.masked_fill(away[:, None], 0.0), table).min(1)
        room = 1e-4 * table.abs().max()
        strays = ((square - alike).abs() > room) & ~hidden(square)
        if bool((least.masked_fill(away, 0.0) < room).all()) and not bool(strays.any()):
            return index.masked_fill(away, -1), len(table)
    return None


def buckets(index: Tensor, rows: int) -> Buckets:
    """The rule by which distances read rows, held against T5's."""
    n = (len(index) + 1) // 2
    distance, found = torch.arange(-(n - 1), n), []
    for kind, most, bidirectional, read in _bucket_rules(distance, index, rows):
        seen = (index >= 0) & (bidirectional | (distance >= 0))  # which no causal mask hides
        wrong = distance[(read != index) & seen].abs()
        if not len(wrong):
            return Buckets(index, rows, kind, most, bidirectional)
        if kind != "clipped":
            off = len(wrong), int(wrong.min()), int(seen.sum())
            found.append(Buckets(index, rows, "off", most, bidirectional, *off))
    return min(found, key=lambda rule: rule.off)


def _bucket_rules(
    distance: Tensor, index: Tensor, rows: int
) -> Iterator[tuple[str, int, bool, Tensor]]:
    """T5's rules, those of the other sign, and one row a distance to the first and last of rows."""
    for (kind, sign), bidirectional in product((("t5", 1), ("turned", -1)), (True, False)):
        side = rows // 2 if bidirectional else rows
        if side < 2 or (bidirectional and rows % 2):
            continue
        for most in (most for most in DISTANCES if most > side // 2):
            yield kind, most, bidirectional, t5_buckets(sign * distance, rows, most, bidirectional)
    own = int(index[len(index) // 2])
    for sign in (1, -1):
        read = (own + sign * distance).clamp(0, rows - 1)
        yield "clipped", max(own, rows - 1 - own), 0 < own < rows - 1, read
