"""The contract battery on features of real coordinates."""

from fractions import Fraction

import pytest
import torch
from tests.contracts.checks import contract

from posenc import NeRFFeatures, PerceiverFeatures, RandomFourierFeatures, Time2Vec
from posenc.positions import Coordinates, grid, prefixed
from posenc.testing import Case


def point(positions):
    """Each position as a point (y, x)."""
    return torch.stack((positions, 1 - 2 * positions), dim=-1)


ADDED = {"dropout": 0.5, "batch_first": False}
CASES = {
    "time2vec": Case(Time2Vec, {"dim": 6}, {"function": "cos", **ADDED}),
    "random-fourier": Case(
        RandomFourierFeatures,
        {"dim": 8, "axes": 2},
        {"std": 2.0, "seed": 1, "sines_first": True, **ADDED},
        lift=point,
    ),
    "nerf": Case(
        NeRFFeatures, {"axes": 2, "bands": 3}, {"include_input": True, **ADDED}, lift=point
    ),
    "perceiver": Case(
        PerceiverFeatures,
        {"resolution": (16, 9), "bands": 3},
        {"include_input": False, **ADDED},
        lift=point,
    ),
}
test_contract = contract(CASES)


@pytest.mark.parametrize("name", ["random-fourier", "nerf", "perceiver"])
def test_tokens_that_stand_nowhere_have_no_features(name):
    features, points = CASES[name].build(**CASES[name].arguments), grid(2, 3)
    for given in (points, Coordinates(points, scale=Fraction(1, 3))):
        table = features.table(prefixed(given, 2))
        assert table[:2].count_nonzero() == 0
        assert torch.equal(table[2:], features.table(given))
