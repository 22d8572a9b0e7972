"""Statistics against scipy and against values worked by hand."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats

from posenc.lab.statistics import (
    agreement,
    bootstrap,
    holm,
    interquartile_mean,
    least_p,
    mean,
    pairs,
    ranks,
    sign_flip,
)

VALUES = [0.3, 0.1, -0.05, 0.22, 0.4, 0.17, 0.09, 0.31]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_has_no_p_value_interval_or_order(value):
    with pytest.raises(ValueError, match=r"differences are .* they must be finite"):
        sign_flip([0.1, value, 0.2])
    with pytest.raises(ValueError, match=r"values are .* they must be finite"):
        bootstrap([0.1, value, 0.2], interquartile_mean)
    with pytest.raises(ValueError, match="they must be finite"):
        pairs({"a": {0: value}, "b": {0: 1.0}})


@pytest.mark.parametrize("p", [float("nan"), -0.1, 1.7, float("inf")])
def test_p_values_are_numbers_from_0_to_1(p):
    with pytest.raises(ValueError, match=f"the p-value of 'b' is {p}; it must be a number from 0"):
        holm({"a": 0.04, "b": p, "c": 0.01})


def test_small_p_values_stay_what_they_are():
    assert holm({"a": 1e-14, "b": 0.5}) == {"a": 2e-14, "b": 0.5}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"confidence": 95}, "confidence is 95; it must be a share up to 1, as 0.95"),
        ({"confidence": -0.5}, "confidence is -0.5"),
        ({"confidence": float("nan")}, "confidence is nan"),
        ({"draws": 0}, "draws is 0; it must be a whole number from 1 on"),
    ],
)
def test_an_interval_needs_a_share_and_draws(asked, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        bootstrap([1.0, 2.0, 3.0], **asked)
    assert said in str(error.value)


def test_the_whole_interval_holds_all_that_is_drawn():
    found = bootstrap([1.0, 2.0, 3.0], confidence=1)
    assert (found.low, found.high) == (1.0, 3.0)  # either, thrice, is one of 27 draws


def test_rows_of_numpy_and_torch_are_rows():
    values = [0.5, 1.0, 4.0]
    assert bootstrap(np.array(values)) == bootstrap(torch.tensor(values)) == bootstrap(values)


def test_what_is_trimmed_away_may_be_infinite_and_nan_is_not_trimmed():
    rows = torch.tensor([[0.0, 1.0, 2.0, torch.inf], [-torch.inf, 1.0, 3.0, torch.inf]]).double()
    expected = stats.trim_mean(rows.numpy(), 0.25, axis=1)
    np.testing.assert_array_equal(interquartile_mean(rows), expected)
    assert interquartile_mean(torch.tensor([0.0, 1.0, 2.0, torch.nan])).isnan()
    assert interquartile_mean(torch.tensor([0.0, torch.inf, torch.inf, torch.inf])).isinf()
    with pytest.raises(ValueError, match="samples have no seeds"):
        interquartile_mean(torch.zeros(2, 0))


def test_the_interquartile_mean_is_the_trimmed_mean_where_quarters_are_whole():
    rows = torch.randn(5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = stats.trim_mean(rows.numpy(), 0.25, axis=1)
    np.testing.assert_allclose(interquartile_mean(rows), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_means_of_many_narrow_samples_are_those_of_wide_ones(dtype):
    rows = (torch.arange(5000) % 8).to(dtype)
    assert interquartile_mean(rows) == interquartile_mean(rows.double()) == 3.5


@pytest.mark.parametrize("size", [1e308, 1e-308, 5e-324])
def test_the_largest_and_the_least_numbers_have_p_values(size):
    assert sign_flip([size] * 3) == least_p(3)
    assert sign_flip([size, -size]) == sign_flip([0.0, 0.0]) == sign_flip([]) == 1.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 5.0), ([1.0, 2.0], 1.5), ([0, 3, 9], 3.5), ([0, 1, 2, 3, 100], 5 / 2.5)],
)
def test_the_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(torch.tensor([values]).double()).item() == pytest.approx(expected)


@pytest.mark.parametrize("statistic", [mean, interquartile_mean])
def test_bootstrap_intervals_are_those_of_scipy(statistic):
    found = bootstrap(VALUES, statistic, draws=20_000)
    theirs = stats.bootstrap(
        (np.array(VALUES),),
        lambda sample, axis: statistic(torch.tensor(np.moveaxis(sample, axis, -1))).numpy(),
        n_resamples=20_000,
        method="percentile",
        rng=0,
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.015)
    assert found.value == pytest.approx(statistic(torch.tensor([VALUES]).double()).item())
    assert bootstrap(VALUES, draws=100) == bootstrap(VALUES, draws=100)


def test_sign_flips_are_those_of_scipy():
    for values in (VALUES, [0.1, 0.2, 0.3], [1.0, -1.0, 0.5, 0.25]):
        theirs = stats.permutation_test(
            (np.array(values),), np.mean, permutation_type="samples", alternative="two-sided"
        )
        assert sign_flip(values) == pytest.approx(theirs.pvalue)
    many = [0.1 * (index % 5) - 0.15 for index in range(40)]
    theirs = stats.permutation_test(
        (np.array(many),), np.mean, permutation_type="samples", n_resamples=20_000, rng=0
    )
    assert sign_flip(many) == pytest.approx(theirs.pvalue, abs=0.02)


@pytest.mark.parametrize(
    "values", [[0.5, 0.9, -0.7, -0.6, 0.4, -0.5], [0.25, -0.21, -0.54, -0.08, 0.02, 0.56]]
)
def test_sums_of_0_are_told_by_no_rounding(values):
    """Their sum is 0 exactly, so that every flip is as far from it or farther."""
    assert sum(map(Fraction, map(str, values))) == 0
    assert sign_flip(values) == 1.0


def test_the_least_p_value_is_that_of_differences_of_one_sign():
    for count in (3, 14, 15, 40):
        assert sign_flip([1.0] * count) >= least_p(count)
    assert least_p(0) == sign_flip([]) == 1.0
    with pytest.raises(ValueError, match="count is -1; it must be a whole number from 0 on"):
        least_p(-1)
    assert least_p(14) == sign_flip([1.0] * 14) == 2 / 2**14
    assert least_p(40) == sign_flip([1.0] * 40)  # 10,000 draws meet none of 2^40 flips


def test_holm_by_hand():
    """0.01 × 4, 0.02 × 3, 0.03 × 2 which is no less than the one before, 0.8 × 1."""
    asked = {"d": 0.8, "a": 0.01, "c": 0.03, "b": 0.02}
    assert holm(asked) == {"a": 0.04, "b": 0.06, "c": 0.06, "d": 0.8}
    assert holm({}) == {}


def test_pairs_take_the_seeds_that_both_have():
    found = pairs({"a": {0: 1.0, 1: 2.0}, "b": {1: 5.0, 2: 9.0}, "c": {7: 0.0}})
    assert [(pair.better, pair.worse, pair.differences) for pair in found] == [("b", "a", (3.0,))]
    assert not found[0].is_clear  # one seed shows nothing


def test_places_are_shared_where_nothing_is_clear():
    scores = {
        "best": {0: 0.9, 1: 0.92, 2: 0.91},
        "like it": {0: 0.91, 1: 0.9, 2: 0.92},
        "worse": {0: 0.5, 1: 0.6, 2: 0.55},
    }
    assert ranks(list(scores), pairs(scores)) == {"best": 1, "like it": 1, "worse": 3}


def test_agreement_counts_pairs_in_the_same_order():
    assert agreement({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}) == (3, 3)
    assert agreement({"a": 1, "b": 2}, {"a": 2, "b": 1, "z": 0}) == (0, 1)
    assert agreement({"a": 1, "b": 2}, {"a": 2, "b": 2}) == (0, 0)
    with pytest.raises(ValueError, match="'a' has nan and 1; leave out what has no number"):
        agreement({"a": float("nan"), "b": 1}, {"a": 1, "b": 2})
