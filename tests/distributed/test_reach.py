"""Keys that cannot matter stay where they are, and the results are those of one process."""

import pytest

CASES = "tests.distributed.reach_cases"


@pytest.mark.parametrize(
    ("slopes", "window", "taken"),
    [
        # A slope of 4: bias −120 at a distance of 30, beyond any score here; the rank before is
        # needed, those before it are not.
        ((4.0, 4.0, 4.0, 4.0), None, 2),
        ((4.0, 4.0, 4.0, 0.001), None, 4),  # the gentlest head decides
        ((0.001, 0.001, 0.001, 0.001), 20, 2),
    ],
)
def test_steps_that_cannot_matter_are_left_out(ranks, slopes, window, taken):
    found = ranks.run(4, f"{CASES}:steep", layout="contiguous", slopes=slopes, window=window)
    for rank, (error, takes) in enumerate(found):
        assert error < 3e-6
        assert sum(takes) == min(taken, rank + 1)


def test_large_scores_reach_farther(ranks):
    """The bound is that of the scores: content ten times as large may outweigh a bias."""
    slopes = (4.0, 4.0, 4.0, 4.0)
    found = ranks.run(4, f"{CASES}:steep", layout="contiguous", slopes=slopes, content=10.0)
    assert max(error for error, _ in found) < 1e-4  # scores are hundreds, which round more
    assert sum(found[3][1]) == 4


def test_large_values_reach_farther(ranks):
    assert max(ranks.run(4, f"{CASES}:outweighed")) < 1e-5


def test_values_that_are_no_numbers_reach_all_that_may_see_them(ranks):
    for found in ranks.run(2, f"{CASES}:poisoned"):
        assert all(found[3:])


def test_ranks_agree_how_far_they_look_though_their_parts_differ(ranks):
    """All of them ask each other for the largest score, or none of them does."""
    found = ranks.run(2, f"{CASES}:unlike")
    assert max(error for error, _ in found) < 3e-6
    matrices = ["0 form scores" not in told for _, told in found]
    assert set(matrices) == {True, False}, found
