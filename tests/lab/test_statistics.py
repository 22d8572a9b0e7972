"""Statistics against scipy and against values worked by hand."""

import numpy as np
import pytest
from scipy import stats

from posenc.lab.statistics import (
    Interval,
    Pair,
    bootstrap,
    holm,
    interquartile_mean,
    least_p,
    sign_flip,
)  # fmt: skip

VALUES = [0.3, 0.1, -0.05, 0.22, 0.4, 0.17, 0.09, 0.31]


def test_the_interquartile_mean_is_the_trimmed_mean_where_quarters_are_whole():
    rows = np.random.default_rng(0).normal(size=(5, 12))
    np.testing.assert_allclose(interquartile_mean(rows), stats.trim_mean(rows, 0.25, axis=1))
    np.testing.assert_allclose(interquartile_mean(rows.T, axis=0), interquartile_mean(rows))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 5.0), ([1.0, 2.0], 1.5), ([0, 3, 9], 3.5), ([0, 1, 2, 3, 100], 5 / 2.5)],
)
def test_the_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)


def test_an_interval_holds_the_share_that_is_asked_for():
    """By hand: either end, thrice, is one of 27 draws, and each is more than 2.5 % of them."""
    found = bootstrap([1.0, 2.0, 3.0])
    assert (found.low, found.value, found.high) == (1.0, 2.0, 3.0)
    wide, narrow = (bootstrap(VALUES, confidence=share) for share in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high
    assert bootstrap([2.0], interquartile_mean) == Interval(2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.1, 0.2, 0.3], 0.25),
        ([1.0, -1.0, 0.5, 0.25], 0.75),  # as far or farther: 12 of 16 flips
        ([0.0, 0.0], 1.0),
        ([5.0], 1.0),
        ([1.0] * 14, 2 / 2**14),
        ([1.0] * 40, 2 / (2**14 + 1)),  # none of the drawn flips is as far
    ],
)
def test_sign_flips_by_hand(differences, expected):
    assert sign_flip(differences) == pytest.approx(expected)
    assert sign_flip(differences) >= least_p(len(differences))


def test_holm_by_hand():
    """0.01 × 4, 0.02 × 3, 0.03 × 2 which is no less than the one before, 0.8 × 1."""
    asked = {"d": 0.8, "a": 0.01, "c": 0.03, "b": 0.02}
    assert holm(asked) == {"a": 0.04, "b": 0.06, "c": 0.06, "d": 0.8}


@pytest.mark.parametrize(
    ("corrected", "low", "clear"), [(0.05, 0.1, True), (0.06, 0.1, False), (0.04, -0.1, False)]
)
def test_clear_is_what_both_the_corrected_p_and_the_interval_say(corrected, low, clear):
    pair = Pair("a", "b", (0.2,), Interval(0.2, low, 0.3), 0.01, corrected)
    assert pair.is_clear is clear
