"""Which linear bias scores receive: ALiBi's slopes, or slopes of a rule of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from posenc.encodings.scores import ALiBi
from posenc.numerics import slopes

HIDDEN = 1000.0
"""Numbers so far below the line hide a key, as -10000 does."""

WORDS: dict[Literal["authors", "geometric"], str] = {
    "authors": "ALiBi",
    "geometric": "ALiBi with purely geometric slopes",
}
"""The rules of slopes, as arguments of ours and in words."""


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
    best = min(_rules(fall), key=lambda each: each.off)
    tolerance = rounding(fall) + 1e-4
    if best.off < tolerance:
        return best
    unordered = _off(fall.abs().sort().values, sorted(slopes.alibi(len(fall)))) < tolerance
    return Linear(fall, "reordered" * unordered, best.off)


def _rules(fall: Tensor) -> Iterator[Linear]:
    """The slopes of ALiBi's authors and purely geometric ones, to each last exponent in use."""
    heads = len(fall)
    for most, (rule, words) in product((8.0, 4.0, 16.0), WORDS.items()):
        ours = ALiBi(heads, slopes=rule, alibi_bias_max=most)
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
