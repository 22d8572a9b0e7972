"""Statistics of a few seeds: paired differences, intervals, and corrections for many questions.

Everything here takes lists of numbers and gives numbers; nothing is drawn without a seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan

import torch
from torch import Tensor

from posenc.arguments import check_whole

DRAWS = 10_000
EXACT = 14
"""Pairs up to which all changes of signs are counted; of more, as many are drawn as ``DRAWS``."""

Statistic = Callable[[Tensor], Tensor]
"""From samples [draws, seeds] to a number each, [draws]."""


def mean(samples: Tensor) -> Tensor:
    """The mean of each row."""
    return samples.mean(-1)


def interquartile_mean(samples: Tensor) -> Tensor:
    """The mean of the middle half of each row: no single seed decides it, and few are wasted.

    Where a quarter is no whole number of seeds, those at its ends count in part. What does not
    count may be infinite; a row with NaN, which stands nowhere in an order, has NaN.

    Raises:
        ValueError: There are no seeds.

    Reference:
        Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
        (arXiv:2108.13264), section 4.3.

    Example:
        >>> interquartile_mean(torch.tensor([[0.0, 1.0, 2.0, 100.0]]))
        tensor([1.5000])
        >>> interquartile_mean(torch.tensor([[0.0, 3.0, 9.0]]))  # weights ¼, 1, ¼ of 1½
        tensor([3.5000])
    """
    ordered = samples.sort(-1).values
    count = ordered.shape[-1]
    if not count:
        raise ValueError("samples have no seeds; a mean needs at least one.")
    low, high = count / 4, 3 * count / 4
    index = torch.arange(count, dtype=torch.float64, device=ordered.device)
    weights = (index + 1).clamp(max=high) - index.clamp(min=low)
    weights = weights.clamp(min=0)
    counted = (ordered * weights).masked_fill(weights == 0, 0.0).sum(-1) / weights.sum()
    counted = counted.masked_fill(ordered[..., -1].isnan(), torch.nan)  # the last, if there is one
    return counted.to(samples.dtype if samples.is_floating_point() else torch.float32)


@dataclass(frozen=True)
class Interval:
    """A value, and the interval that holds it with the confidence asked for."""

    value: float
    low: float
    high: float


def bootstrap(
    values: Sequence[float],
    statistic: Statistic = mean,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """The percentile bootstrap interval of a statistic of independent seeds.

    With three seeds it is too narrow by far, since it can hold nothing beyond what was seen.

    Args:
        values: One a seed.
        statistic: What of them.
        confidence: The share of resampled statistics that the interval holds.
        draws: How often the seeds are resampled.
        seed: Of the resampling.

    Raises:
        ValueError: There are no values, or one is infinite or no number; ``confidence`` is no share
            above 0, up to 1; ``draws`` is no whole number from 1 on.

    Reference:
        Efron 1979, "Bootstrap Methods: Another Look at the Jackknife".

    Example:
        >>> bootstrap([1.0, 1.0, 1.0])
        Interval(value=1.0, low=1.0, high=1.0)
    """
    if not len(values):
        raise ValueError("values is empty; an interval needs at least one seed.")
    if not 0 < confidence <= 1:
        raise ValueError(f"confidence is {confidence}; it must be a share up to 1, as 0.95.")
    check_whole(draws=draws)
    given = _finite(values=values)
    generator = torch.Generator().manual_seed(seed)
    picked = torch.randint(len(values), (draws, len(values)), generator=generator)
    ends = torch.tensor([(1 - confidence) / 2, (1 + confidence) / 2], dtype=torch.float64)
    low, high = statistic(given[picked]).quantile(ends).tolist()
    return Interval(statistic(given[None]).item(), low, high)


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> float:
    """The p-value of paired differences: how often flipped signs give a mean as far from 0.

    All 2ⁿ flips are counted for up to 14 pairs, so that it is exact: no less than 2/2ⁿ, which is
    0.25 for three seeds and 0.002 for ten. Of more pairs 10,000 flips are drawn. Sums that differ
    by less than their rounding are equal.

    Raises:
        ValueError: A difference is infinite or no number.

    Reference:
        Fisher 1935, "The Design of Experiments", section 21.

    Example:
        >>> sign_flip([0.1, 0.2, 0.3]), sign_flip([1.0, -1.0])
        (0.25, 1.0)
    """
    given = _finite(differences=differences)  # else no flip would be as far from 0, and p be 0
    given = given / (max(given.abs().tolist(), default=0.0) or 1.0)  # sums stay within float64
    if len(differences) <= EXACT:
        signs = torch.tensor(list(product((1.0, -1.0), repeat=len(differences)))).double()
        added = 0
    else:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(2, (DRAWS, len(differences)), generator=generator)
        signs, added = 2.0 * drawn.double() - 1, 1  # what was seen is one of the flips
    flipped, seen = (signs @ given).abs(), given.sum().abs()
    rounding = 1e-12 * given.abs().sum()
    as_far = int((flipped >= seen - rounding).sum()) + added
    return as_far / (len(signs) + added)


def _finite(**given: Sequence[float]) -> Tensor:
    """One argument as float64, by its name.

    Raises:
        ValueError: A number is infinite or none.
    """
    ((name, values),) = given.items()
    made = torch.as_tensor(values, dtype=torch.float64)
    if not made.isfinite().all():
        raise ValueError(
            f"{name} are {made.tolist()}; they must be finite. Leave out the seeds that have no "
            "score."
        )
    return made


def least_p(count: int) -> float:
    """The least p-value that ``sign_flip`` can give for so many pairs; 1 for none.

    Raises:
        ValueError: ``count`` is no whole number from 0 on.

    Example:
        >>> least_p(3), least_p(100) == 1 / (DRAWS + 1)
        (0.25, True)
    """
    check_whole(0, count=count)
    return min(1.0, 2 / 2**count) if count <= EXACT else 1 / (DRAWS + 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values corrected for how many questions were asked at once.

    The i-th smallest of m is multiplied by m − i + 1, and none falls below one before it.

    Raises:
        ValueError: One is no number from 0 to 1.

    Reference:
        Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    for name, p in p_values.items():
        if not 0 <= p <= 1:  # NaN is none either, and would stand anywhere in their order
            raise ValueError(f"the p-value of {name!r} is {p}; it must be a number from 0 to 1.")
    ordered = sorted(p_values, key=p_values.__getitem__)
    corrected, least = {}, 0.0
    for index, name in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - index) * p_values[name]))
        corrected[name] = least
    return corrected


@dataclass(frozen=True)
class Pair:
    """How much better one encoding is than another, seed by seed.

    Attributes:
        better: The one with the larger mean.
        worse: The other.
        differences: Of each seed that both have, in favor of ``better``.
        interval: Bootstrap interval of their mean.
        p: Sign-flip p-value, exact for up to 14 seeds.
        corrected: The same after Holm, over all pairs of the comparison.
    """

    better: str
    worse: str
    differences: tuple[float, ...]
    interval: Interval
    p: float
    corrected: float = 1.0

    @property
    def is_clear(self) -> bool:
        """Whether there are three seeds or more and the interval lies above 0."""
        return len(self.differences) >= 3 and self.interval.low > 0


def pairs(scores: Mapping[str, Mapping[int, float]]) -> list[Pair]:
    """All pairs of encodings, by the seeds that both have; larger scores are better.

    Args:
        scores: By encoding and seed.

    Example:
        >>> (pair,) = pairs({"a": {0: 0.5, 1: 0.6, 2: 0.7}, "b": {0: 0.1, 1: 0.3, 2: 0.2}})
        >>> pair.better, [round(each, 1) for each in pair.differences], pair.is_clear
        ('a', [0.4, 0.3, 0.5], True)
    """
    names = list(scores)
    found = [
        made
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        if (made := _pair(one, other, scores)) is not None
    ]
    corrected = holm({f"{each.better}\0{each.worse}": each.p for each in found})
    return [replace(e, corrected=corrected[f"{e.better}\0{e.worse}"]) for e in found]


def _pair(one: str, other: str, scores: Mapping[str, Mapping[int, float]]) -> Pair | None:
    seeds = sorted(scores[one].keys() & scores[other].keys())
    if not seeds:
        return None
    differences = [scores[one][seed] - scores[other][seed] for seed in seeds]
    if sum(differences) < 0:
        one, other, differences = other, one, [-each for each in differences]
    return Pair(one, other, tuple(differences), bootstrap(differences), sign_flip(differences))


def ranks(names: Sequence[str], found: Sequence[Pair]) -> dict[str, int]:
    """A place for each: 1, and one more for every encoding that is clearly better.

    Those between which nothing is clear share a place as far as others allow.

    Example:
        >>> one = Pair("a", "b", (1.0, 1.0, 1.0), Interval(1.0, 1.0, 1.0), 0.25)
        >>> ranks(["a", "b", "c"], [one])
        {'a': 1, 'b': 2, 'c': 1}
    """
    worse = [pair.worse for pair in found if pair.is_clear]
    return {name: 1 + worse.count(name) for name in names}


def agreement(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of encodings stand in the same order in both, and how many there are.

    Raises:
        ValueError: A value is NaN, which stands in no order.

    Example:
        >>> agreement({"a": 3, "b": 2, "c": 1}, {"a": 0.9, "b": 0.1, "c": 0.5, "d": 0})
        (2, 3)
    """
    shared = [name for name in ours if name in theirs]
    for name in shared:
        if isnan(ours[name]) or isnan(theirs[name]):
            raise ValueError(
                f"{name!r} has {ours[name]} and {theirs[name]}; leave out what has no number."
            )
    same = total = 0
    for index, one in enumerate(shared):
        for other in shared[index + 1 :]:
            if theirs[one] != theirs[other]:
                total += 1
                same += (ours[one] - ours[other]) * (theirs[one] - theirs[other]) > 0
    return same, total


__all__ = [
    "Interval",
    "Pair",
    "agreement",
    "bootstrap",
    "holm",
    "interquartile_mean",
    "least_p",
    "pairs",
    "ranks",
    "sign_flip",
]
