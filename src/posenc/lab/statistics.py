"""Statistics of a few seeds: paired differences, intervals, and corrections for many questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from scipy import stats

LEVEL = 0.05
"""A difference is clear where its corrected p-value is no larger, and its interval above 0."""

EXACT = 14  # pairs up to which all changes of signs are counted; of more, as many are drawn


def interquartile_mean(samples: Any, axis: int = -1) -> Any:
    """The mean of the middle half: no single seed decides it, and few are wasted.

    Where a quarter is no whole number of seeds, those at its ends count in part.

    Reference:
        Agarwal et al. 2021 (arXiv:2108.13264), section 4.3.

    Example:
        >>> float(interquartile_mean([0.0, 1.0, 2.0, 100.0]))
        1.5
        >>> float(interquartile_mean([0.0, 3.0, 9.0]))  # weights ¼, 1, ¼ of 1½
        3.5
    """
    ordered = np.sort(np.moveaxis(np.asarray(samples, float), axis, -1), -1)
    count = ordered.shape[-1]
    index = np.arange(count)
    weights = np.minimum(index + 1, 0.75 * count) - np.maximum(index, 0.25 * count)
    return ordered @ (weights.clip(min=0) / (count / 2))


@dataclass(frozen=True)
class Interval:
    """A value, and the interval that holds it with the confidence asked for."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(
    values: Sequence[float], statistic: Callable[..., Any] = np.mean, *, confidence: float = 0.95
) -> Interval:
    """The percentile bootstrap interval of a statistic of independent seeds.

    With three seeds it is too narrow by far, since it can hold nothing beyond what was seen.

    Reference:
        Efron 1979, "Bootstrap Methods: Another Look at the Jackknife".

    Example:
        >>> bootstrap([1.0, 1.0, 1.0])
        Interval(value=1.0, low=1.0, high=1.0)
    """
    given = np.asarray(values, float)
    value = float(statistic(given, axis=-1))
    if (given == given[0]).all():
        return Interval(value, value, value)
    how = {"method": "percentile", "confidence_level": confidence, "n_resamples": 10_000}
    found = stats.bootstrap((given,), statistic, rng=0, **how).confidence_interval
    return Interval(value, float(found.low), float(found.high))


def sign_flip(differences: Sequence[float]) -> float:
    """The p-value of paired differences: how often flipped signs give a mean as far from 0.

    Exact for up to 14 pairs, where it is 2/2ⁿ at least: 0.25 for three seeds, 0.002 for ten.

    Reference:
        Fisher 1935, "The Design of Experiments", section 21.

    Example:
        >>> sign_flip([0.1, 0.2, 0.3]), sign_flip([1.0, -1.0])
        (0.25, 1.0)
    """
    if len(differences) < 2:
        return 1.0
    given, how = np.asarray(differences, float), dict[str, Any](n_resamples=2**EXACT, rng=0)
    found = stats.permutation_test((given,), np.mean, permutation_type="samples", **how)
    return float(found.pvalue)


def least_p(seeds: int, pairs: int = 1) -> float:
    """The least p-value that ``sign_flip`` and ``holm`` can give so many pairs of encodings."""
    alone = 2 / 2**seeds if seeds <= EXACT else 2 / (2**EXACT + 1)
    return min(1.0, pairs * alone)


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """p-values corrected for how many questions were asked at once.

    The i-th smallest of m is multiplied by m − i + 1, and none falls below one before it.

    Reference:
        Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    ordered = sorted(p_values, key=p_values.__getitem__)
    scaled = [(len(ordered) - i) * p_values[name] for i, name in enumerate(ordered)]
    return dict(zip(ordered, accumulate((min(1.0, p) for p in scaled), max), strict=True))


@dataclass(frozen=True)
class Pair:
    """How much better one encoding is than another, seed by seed."""

    better: str
    worse: str
    differences: tuple[float, ...]  # of each seed that both have
    interval: Interval  # of their mean
    p: float  # by sign flips
    corrected: float = 1.0  # after Holm, over all pairs of the comparison

    @property
    def is_clear(self) -> bool:
        """Whether both the corrected p-value and the interval say so."""
        return self.corrected <= LEVEL and self.interval.low > 0


def pairs(scores: Mapping[str, Mapping[int, float]]) -> list[Pair]:
    """All pairs of encodings, the largest mean difference first; larger scores are better.

    ``scores`` are those of each encoding by seed.
    """
    found = []
    for one, other in combinations(scores, 2):
        seeds = sorted(scores[one].keys() & scores[other].keys())
        gaps = [scores[one][seed] - scores[other][seed] for seed in seeds]
        if sum(gaps) < 0:
            one, other, gaps = other, one, [-gap for gap in gaps]
        if gaps:
            found.append(Pair(one, other, tuple(gaps), bootstrap(gaps), sign_flip(gaps)))
    corrected = holm({index: each.p for index, each in enumerate(found)})
    found = [replace(each, corrected=corrected[index]) for index, each in enumerate(found)]
    return sorted(found, key=lambda each: -each.interval.value)


def why_never_clear(found: Sequence[Pair]) -> str:
    """That seeds are too few for any difference to be clear; empty where they are enough."""
    seeds = max((len(pair.differences) for pair in found), default=0)
    least = least_p(seeds, len(found))
    if least <= LEVEL:
        return ""
    return f"{seeds} seeds are too few for a clear difference (p cannot fall below {least:.2g})"


def ranks(names: Sequence[str], found: Sequence[Pair]) -> dict[str, int]:
    """A place for each: 1, and one more for every encoding that is clearly better."""
    worse = [pair.worse for pair in found if pair.is_clear]
    return {name: 1 + worse.count(name) for name in names}


def agreement(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of encodings stand in the same order in both, and how many there are."""
    signs = [
        (ours[one] - ours[other]) * (theirs[one] - theirs[other])
        for one, other in combinations([name for name in ours if name in theirs], 2)
        if theirs[one] != theirs[other]
    ]
    return sum(sign > 0 for sign in signs), len(signs)
