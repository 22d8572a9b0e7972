"""Sandwich against plain sums of cosines and the sinusoidal encoding behind it."""

from math import cos

import pytest
import torch

from posenc import Sandwich


@pytest.mark.parametrize(("heads", "dim"), [(4, 128), (12, 128), (8, 6)])
def test_sums_of_cosines(heads, dim):
    """The sum over the width, divided by ALiBi's exponents 8h / heads."""
    distances = torch.tensor([0, 1, 17, 1000, -5])
    got = Sandwich(heads, dim).profile(distances, dtype=torch.float64)
    for h in range(heads):
        for index, d in enumerate(distances.tolist()):
            similarity = sum(cos(d / 10_000 ** (2 * i / dim)) for i in range(dim // 2))
            meant = similarity / ((h + 1) * 8 / heads)
            assert got[h, index].item() == pytest.approx(meant, abs=1e-11)


def test_the_sum_may_begin_at_1():
    """As in NeMo, which subtracts dim/2 besides: a constant, of which no softmax takes notice."""
    distances = [0, 1, 17, -5]
    got = Sandwich(4, 128, first=1).profile(distances, dtype=torch.float64)
    for h in range(4):
        for index, d in enumerate(distances):
            similarity = sum(cos(d / 10_000 ** (2 * i / 128)) for i in range(1, 65))
            meant = (similarity - 64) / ((h + 1) * 8 / 4)
            assert got[h, index].item() - 64 / ((h + 1) * 2) == pytest.approx(meant, abs=1e-11)
    assert not torch.equal(got, Sandwich(4, 128).profile(distances, dtype=torch.float64))
