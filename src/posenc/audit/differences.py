"""Where two tensors part, and what differing bits of q and k do to scores and to attention."""

from dataclasses import dataclass

import torch
from torch import Tensor

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
QUERIES = 64  # so many queries, evenly spread and the last among them, look at all keys before them


@dataclass(frozen=True)
class Difference:
    """How two tensors of one shape and dtype differ."""

    name: str  # of what
    count: int  # elements whose bits differ
    total: int  # elements
    by_one: int = 0  # those that differ by one unit in the last place
    most_ulp: int = 0  # the largest number of representable values between two elements
    largest: float = 0.0  # the largest absolute difference
    position: int | None = None  # the first position at which elements differ; None where none does
    pair: int | None = None  # the first pair there
    values: tuple[float, float] | None = None  # the two values there

    @property
    def is_none(self) -> bool:
        """Whether all bits are equal."""
        return self.count == 0


def difference(name: str, a: Tensor, b: Tensor) -> Difference:
    """How ``a`` and ``b`` differ, ``[heads, positions, 2, pairs]``."""
    ulps = (ordered(a) - ordered(b)).abs()
    apart = ulps.permute(1, 3, 0, 2).nonzero()  # the first position first, then the first pair
    if not len(apart):
        return Difference(name, 0, a.numel())
    position, pair, head, half = apart[0].tolist()
    one, other = (x[head, position, half, pair].item() for x in (a, b))
    largest = (a.double() - b.double()).abs().max().item()
    by_one, most = int((ulps == 1).sum()), int(ulps.max())
    return Difference(
        name, len(apart), a.numel(), by_one, most, largest, position, pair, (one, other)
    )


def ordered(x: Tensor) -> Tensor:
    """Whole numbers in the order of floating ones: neighbors differ by 1, and 0 is −0."""
    whole = INTEGERS[x.element_size()]
    bits = x.contiguous().view(whole).long()
    magnitude = bits & torch.iinfo(whole).max
    return torch.where(bits < 0, -magnitude, magnitude)


@dataclass(frozen=True)
class Effect:
    """The change of scores and softmax from one implementation to the other."""

    content: str  # whose q and k
    tokens: int  # how many
    score: float  # largest change of a score
    spread: float  # standard deviation of the scores, to compare with
    weight: float  # largest change of an attention weight
    divergence: float  # largest Kullback–Leibler divergence of a row of weights, in nats


def effect(
    content: str, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], scale: float
) -> Effect:
    """Causal attention of both, in float64 from the rotated q and k on."""
    seq = one[0].shape[2]
    rows = torch.linspace(0, seq - 1, min(QUERIES, seq)).round().long().unique()
    shown = torch.arange(seq) <= rows[:, None]
    a, b = (_scores(q, k, rows) * scale for q, k in (one, other))
    log_a, log_b = (s.masked_fill(~shown, -torch.inf).log_softmax(-1) for s in (a, b))
    terms = torch.where(shown, log_a.exp() * (log_a - log_b), 0.0)
    moved, spread = (a - b)[:, shown].abs().max().item(), a[:, shown].std().item()
    weight = (log_a.exp() - log_b.exp()).abs().max().item()
    return Effect(content, seq, moved, spread, weight, max(terms.sum(-1).max().item(), 0.0))


def _scores(q: Tensor, k: Tensor, rows: Tensor) -> Tensor:
    queries, keys = q[0][:, rows].double(), k[0].double()
    return queries @ keys.repeat_interleave(len(queries) // len(keys), 0).mT
