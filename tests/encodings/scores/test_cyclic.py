"""Distances around a ring, against the offsets of AfCycDesign and of Boltz."""

import numpy as np
import pytest
import torch

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
