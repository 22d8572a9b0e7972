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
    """The slopes of a bias ``[heads, seq, seq]`` that is 0 at each query's own key, if linear.

    ``given`` is the same as it came.
    """
    last = seen[:, -1]
    fall = last[:, -1] - last[:, -2]
    wanted = of_distance(fall, torch.arange(seen.shape[-1] - 1, -1, -1))
    if fall.abs().max() == 0 or not torch.isfinite(last).all():
        return None
    off, size = (last - wanted).abs().amax(1), wanted.abs().amax(1)
    if bool((off > room(given, wanted) * size).any()):  # a slope may be 128 times another
        return None
    best = min(_rules(fall), key=lambda each: each.off)
    tolerance = room(fall, None, 2**-8, 2**-10, 1e-4)  # of one rounding
    if best.off < tolerance:
        return best
    unordered = _off(fall.abs().sort().values, sorted(slopes.alibi(len(fall)))) < tolerance
    return Linear(fall, "reordered" * unordered, best.off)


def of_distance(fall: Tensor, distance: Tensor) -> Tensor:
    """−slope × distance."""
    return -fall[:, None] * distance.double()


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
    """
    rounded = of_16_bits(given) - (set() if line is None else of_16_bits(line))
    return bfloat16 if torch.bfloat16 in rounded else float16 if rounded else float32


def of_16_bits(numbers: Tensor) -> set[torch.dtype]:
    """The 16-bit dtypes that hold all numbers, whatever their own is."""
    known, wide = (torch.bfloat16, torch.float16), numbers.double()
    return {dtype for dtype in known if bool((numbers.to(dtype).double() == wide).all())}


def parting(row: Tensor, distance: Tensor, fall: Tensor) -> tuple[int, int, float, float] | None:
    """Where a row of a bias ``[heads, keys]`` leaves the line −fall · distance, if it does.

    That is the nearest distance and a head, the bias there less the query's own, and the line's.
    """
    made, wanted = row.double(), of_distance(fall, distance)
    seen, largest = made - made[:, -1:], made.abs().amax(1, keepdim=True)
    size = room(row, wanted) * wanted.abs() + room(row, wanted, 2.0**-7, 2.0**-10, 1e-6) * largest
    away = (seen - wanted).abs() > size
    if not bool(away.any()):
        return None
    key = int(away.any(0).nonzero().max())
    head = int(away[:, key].nonzero()[0])
    return int(distance[key]), head, seen[head, key].item(), wanted[head, key].item()


def knows_later_keys(seen: Tensor, given: Tensor, fall: Tensor) -> bool:
    """Whether keys after the query are hidden, or receive what implementations give them.

    That is -slope · |distance|, slope · (key - query), which goes on growing, or nothing; all the
    same where a causal mask hides them. ``given`` is the bias as it came.
    """
    index = torch.arange(seen.shape[-1], dtype=torch.float64)
    ahead = (index[None] - index[:, None]).clamp(min=0) * fall[:, None, None]
    later = (ahead > 0) & torch.isfinite(seen) & (seen > -HIDDEN)
    most = room(given, ahead) * ahead.amax((1, 2), keepdim=True)
    offs = ((seen - sign * ahead).abs() <= most for sign in (-1.0, 1.0, 0.0))
    return any(bool(near[later].all()) for near in offs)
