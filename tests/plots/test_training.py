"""Figures of the lab: every seed is drawn, and where."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from posenc.plots import costs, length_curve, loss_curves, paired_differences
from posenc.plots.style import look, told_apart


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_every_seed_is_a_dot_at_its_length():
    scores = {"a": {1: [0.9, 1.0, 0.95], 8: [0.5, 0.7, 0.6]}, "b": {1: [0.8]}}
    middles = {"a": {1: (0.95, 0.9, 1.0), 8: (0.6, 0.5, 0.7)}}
    ax = length_curve(scores, middles, chance=0.5)
    first = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(np.sort(first[:, 1]), [0.5, 0.6, 0.7, 0.9, 0.95, 1.0])
    np.testing.assert_allclose(np.log2(first[:, 0]).round(), [0, 0, 0, 3, 3, 3])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "8"]
    assert ax.get_ylabel() == "accuracy"


def test_differences_keep_their_order_and_sign():
    seeds = {"a − b": [0.1, 0.3], "a − c": [-0.2, 0.0]}
    ax = paired_differences(seeds, {"a − b": (0.2, 0.1, 0.3), "a − c": (-0.1, -0.2, 0.0)})
    assert [text.get_text() for text in ax.get_yticklabels()] == list(seeds)
    for row, (name, collection) in enumerate(zip(seeds, ax.collections[::2], strict=True)):
        points = np.asarray(collection.get_offsets())
        np.testing.assert_allclose(points[:, 0], seeds[name])
        assert set(points[:, 1]) == {row}
    top, bottom = ax.get_ylim()[::-1]
    assert top < bottom  # the first comparison stands above


def test_losses_are_drawn_by_seed_and_their_median_on_top():
    ax = loss_curves({"a": [[[1, 3.0], [2, 1.0]], [[1, 2.0], [2, 2.0]], [[1, 9.0], [2, 1.5]]]})
    assert [list(line.get_ydata()) for line in ax.lines] == [[3, 1], [2, 2], [9, 1.5], [3, 1.5]]
    assert ax.get_yscale() == "log"


def test_a_median_is_of_losses_at_one_step():
    """One seed ended at step 3, where the others have no point."""
    ax = loss_curves({"a": [[[2, 3.0], [3, 9.0]], [[2, 1.0], [4, 0.5]], [[2, 2.0], [4, 0.4]]]})
    assert ax.lines[-1].get_xydata().tolist() == [[2.0, 2.0]]


def test_costs_are_medians():
    ax = costs({"a": [1.0, 5.0, 2.0], "b": [3.0]}, {"a": 0, "b": 96})
    assert [bar.get_width() for bar in ax.patches] == [2.0, 3.0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b (96 learned)"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: length_curve({}, {}),
        lambda: paired_differences({}, {}),
        lambda: loss_curves({}),
        lambda: costs({}, {}),
        lambda: length_curve({"a": {1: [float("nan")]}}, {}),
    ],
)
def test_nothing_is_refused(draw):
    with pytest.raises(ValueError, match=r"give at least one|finite numbers"):
        draw()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: costs({"a": np.array([]), "b": np.ones(2)}, {}), "milliseconds of a has shape"),
        (lambda: costs({"a": np.array([])}, {}), "milliseconds is empty"),
        (lambda: loss_curves({"a": [[[1, 2.0]]], "b": []}), "no seed of b; give one, or leave b"),
        (lambda: loss_curves({"a": [[[1, 2.0]], []]}), r"Seed 1 of a has shape \[0\]"),
        (lambda: loss_curves({"a": [[1, 2.0]]}), r"Seed 0 of a has shape \[2\]; expected points"),
        (lambda: paired_differences({"a": [0.1]}, {}), "intervals has none of 'a'; give"),
    ],
)
def test_what_is_missing_of_one_is_named(draw, said):
    with pytest.raises(ValueError, match=said):
        draw()


def test_numbers_may_come_in_arrays():
    ax = costs({"a": np.array([1.0, 5.0, 2.0])}, {"a": np.int64(7)})
    assert [bar.get_width() for bar in ax.patches] == [2.0]
    ax = loss_curves({"a": np.array([[[1, 3.0], [2, 1.0]], [[1, 2.0], [2, 2.0]]])})
    assert list(ax.lines[-1].get_ydata()) == [2.5, 1.5]
    ax = paired_differences({"a": np.array([0.1, 0.3])}, {"a": np.array([0.2, 0.1, 0.3])})
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a"]


def test_many_curves_are_told_apart():
    for theme in ("light", "dark"):
        looks = {tuple(told_apart(turn, look(theme)).values()) for turn in range(24)}
        assert len(looks) == 24
