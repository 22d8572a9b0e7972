"""Randomized positions: sorted, distinct, and every one equally likely."""

from itertools import combinations
from math import comb

import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import Randomized
from posenc.positions import consecutive, pair_distances


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 40), st.integers(0, 100), st.integers(0, 2**31))
def test_a_sample_is_sorted_distinct_and_in_range(seq, room, seed):
    drawn = Randomized(seq + room)(consecutive(seq).expand(3, seq), generator=seeded(seed))
    assert drawn.dtype == torch.int64
    assert (drawn.diff() > 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < seq + room


def test_every_subset_is_equally_likely():
    drawn = Randomized(6)(consecutive(3).expand(40_000, 3), generator=seeded())
    subsets, counts = drawn.unique(dim=0, return_counts=True)
    assert [tuple(each) for each in subsets.tolist()] == list(combinations(range(6), 3))
    expected = 40_000 / comb(6, 3)
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 43.8  # one in a thousand, with 19 degrees of freedom


def test_distances_are_one_sorted_sample_on_both_sides():
    """The authors' form for ALiBi: Toeplitz, 0 on the diagonal, ±s_1, ±s_2, … beside it."""
    distance = pair_distances(range(6), range(6))
    drawn = Randomized(100).distances(distance, generator=seeded())
    assert torch.equal(drawn, -drawn.mT)
    assert torch.equal(drawn[1:, 1:], drawn[:-1, :-1])
    sample = drawn[:, 0]
    assert sample[0] == 0
    assert (sample.diff() > 0).all()
    assert sample[-1] < 100
    assert torch.equal(Randomized(6).distances(distance), distance)  # without room
