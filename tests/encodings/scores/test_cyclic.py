"""Distances around a ring, against the offsets of AfCycDesign and of Boltz."""

import numpy as np
import pytest
import torch

import posenc
from posenc import ALiBi, Cyclic, Positional, T5Bias
from posenc.encodings.scores.cyclic import around


def by_copies(length: int) -> np.ndarray:
    """The shortest way between i and either copy of j, one ring apart; its sign by the way."""
    made = np.zeros((length, length), dtype=int)
    for i in range(length):
        for j in range(length):
            ways = [i - j, i - j + length, i - j - length]
            shortest = min(map(abs, ways))
            # Where both ways are as long, that along the row is taken.
            made[i, j] = i - j if abs(i - j) == shortest else min(ways, key=abs)
    return made


@pytest.mark.parametrize("length", [1, 2, 5, 6, 13])
def test_they_are_the_offsets_of_a_cyclic_peptide(length):
    here = torch.arange(length)
    got = around(here.unsqueeze(-1) - here, length)
    assert np.array_equal(got.numpy(), by_copies(length))


def test_they_are_those_of_boltz_but_halfway_around():
    distance = torch.arange(-40, 41)
    for period in (5, 7, 8):
        boltz = distance - period * torch.round(distance / period).long()
        halfway = boltz.abs() * 2 == period
        assert torch.equal(around(distance, period)[~halfway], boltz[~halfway])
        assert torch.equal(around(distance, period).abs(), boltz.abs())


def test_far_distances_stay_exact():
    far = torch.tensor([2**62 + 1, -(2**62) - 1])
    assert around(far, 2**62).tolist() == [1, -1]


def test_turning_the_ring_changes_nothing():
    # With an odd number of tokens no two are halfway around, where the sign would turn.
    bias, here = Cyclic(4, T5Bias(4, buckets=8, max_distance=6), period=11), torch.arange(11)
    q, k, v = torch.randn(3, 1, 4, 11, 8)
    one, other = (
        posenc.attention(
            q, k, v, positional=Positional(scores=bias), q_positions=at, k_positions=at
        )
        for at in (here, (here + 5) % 11)
    )
    torch.testing.assert_close(one, other)


def test_a_ring_that_nobody_goes_around_is_the_bias():
    alibi = ALiBi(4)
    distance = torch.arange(-50, 51)
    assert torch.equal(Cyclic(4, alibi, 1000).profile(distance), alibi.profile(distance))
