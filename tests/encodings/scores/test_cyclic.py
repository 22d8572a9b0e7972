"""Distances around a ring, against the offsets of AfCycDesign and of Boltz."""

import torch

from posenc.positions.distances import around


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
