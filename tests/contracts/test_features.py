"""The contract battery on features of real coordinates."""

import pytest
import torch

from posenc import NeRFFeatures, PerceiverFeatures, RandomFourierFeatures, Time2Vec
from posenc.testing import Case, batteries


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
        NeRFFeatures,
        {"axes": 2, "bands": 3},
        {"include_input": True, **ADDED},
        lift=point,
    ),
    "perceiver": Case(
        PerceiverFeatures,
        {"resolution": (16, 9), "bands": 3},
        {"include_input": False, **ADDED},
        lift=point,
    ),
}
CHECKS = batteries(CASES)


@pytest.mark.parametrize("check", list(CHECKS.values()), ids=list(CHECKS))
def test_contract(check):
    check()
