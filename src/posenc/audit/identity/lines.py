"""Which linear bias scores receive: ALiBi's slopes, or slopes of a rule of its own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from posenc.numerics import slopes

HIDDEN = 1000.0
"""Numbers so far below the line hide a key, as -10000 does."""

RULES = {
    "alibi": "ALiBi for {} heads",
    "geometric": "ALiBi with purely geometric slopes for {} heads",
}


@dataclass(frozen=True)
class Linear:
    """A bias that falls linearly with distance."""

    fall: Tensor  # by how much it falls from one key to the one before, for each head
    rule: str  # "alibi", "geometric", "alibi in another order" or empty
    most: float  # the exponent of the last slope, 8 in the paper
    off: float  # largest relative difference to the nearest rule

    @property
    def said(self) -> str:
        """One line."""
        most = f", slopes to 2^−{self.most:g}" if self.most != 8 else ""
        return RULES[self.rule].format(len(self.fall)) + most if self.rule in RULES else ""

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
    fall = last[:, -1] - last[:, -2]
    wanted = _line(fall, seen.shape[-1])
    if fall.abs().max() == 0 or not torch.isfinite(last).all():
        return None
    off, size = (last - wanted).abs().amax(1), wanted.abs().amax(1)
    if bool((off > room(given, wanted) * size).any()):  # a slope may be 128 times another
        return None
    return _ruled(fall, room(fall, None, 2**-8, 2**-10, 1e-4))


def _line(fall: Tensor, keys: int) -> Tensor:
    """−slope × distance of so many keys from the last of them."""
    return -fall[:, None] * torch.arange(keys - 1, -1, -1, dtype=torch.float64)


def _ruled(fall: Tensor, tolerance: float) -> Linear:
    """The rule of these slopes; one rounded to bfloat16 is 2^-8 off at most."""
    heads, found = len(fall), []
    for most in (8.0, 4.0, 16.0):
        for name, rule in (("alibi", slopes.alibi), ("geometric", slopes.geometric)):
            ours = torch.tensor(rule(heads, most), dtype=torch.float64)
            found.append(Linear(fall, name, most, (fall.abs() / ours - 1).abs().max().item()))
    best = min(found, key=lambda each: each.off)
    if best.off < tolerance:
        return best
    ours = torch.tensor(slopes.alibi(heads), dtype=torch.float64)
    unordered = (fall.abs().sort().values / ours.sort().values - 1).abs().max().item()
    return Linear(fall, "alibi in another order" * (unordered < tolerance), 8.0, best.off)


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


@dataclass(frozen=True)
class Parting:
    """Where a bias leaves the line that it follows for near keys."""

    distance: int  # the nearest key that is away from it
    head: int
    given: float  # the bias there, less that of the query's own key
    wanted: float  # what slope × distance would be


def parting(row: Tensor, fall: Tensor) -> Parting | None:
    """Where a row of a bias ``[heads, keys]`` leaves -fall · distance, if it does.

    The query stands at the last key. Keys that are hidden are not compared.
    """
    made = row.double()
    seen, keys = made - made[:, -1:], made.shape[1]
    wanted = _line(fall, keys)
    hidden = ~torch.isfinite(seen) | (seen < wanted.amin(1, keepdim=True) - HIDDEN)
    largest = made.masked_fill(hidden, 0.0).abs().amax(1, keepdim=True)
    compared = row[:, ~hidden.any(0)], wanted[:, ~hidden.any(0)]
    size = room(*compared) * wanted.abs() + room(*compared, 2.0**-7, 2.0**-10, 1e-6) * largest
    away = ((seen - wanted).abs() > size) & ~hidden
    if not bool(away.any()):
        return None
    key = int(away.any(0).nonzero().max())
    head = int(away[:, key].nonzero()[0])
    return Parting(keys - 1 - key, head, seen[head, key].item(), wanted[head, key].item())


def knows_later_keys(seen: Tensor, given: Tensor, fall: Tensor) -> bool:
    """Whether keys after the query are hidden, or receive what implementations give them.

    That is -slope · |distance|, slope · (key - query), which goes on growing, or nothing; all the
    same where a causal mask hides them. ``given`` is the bias as it came.
    """
    index = torch.arange(seen.shape[-1], dtype=torch.float64)
    ahead = (index[None] - index[:, None]).clamp(min=0) * fall[:, None, None]
    later = (ahead > 0) & torch.isfinite(seen) & (seen > -HIDDEN)
    most = room(given, ahead) * ahead.amax((1, 2), keepdim=True)
    return any(
        bool(((seen - sign * ahead).abs() <= most)[later].all()) for sign in (-1.0, 1.0, 0.0)
    )
