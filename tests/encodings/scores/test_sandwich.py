"""Sandwich against plain sums of cosines and the sinusoidal encoding behind it."""

from math import cos

import pytest
import torch

from posenc import Sandwich


@pytest.mark.parametrize(
    ("heads", "dim", "first"), [(4, 128, 0), (12, 128, 0), (8, 6, 0), (4, 128, 1)]
)
def test_sums_of_cosines(heads, dim, first):
    """Summed over the width, from 0, or from 1 as in NeMo, over ALiBi's exponents 8h / heads."""
    distances = [0, 1, 17, 1000, -5]
    got = Sandwich(heads, dim, first=first).profile(distances, dtype=torch.float64)
    for h in range(heads):
        for index, d in enumerate(distances):
            terms = range(first, first + dim // 2)
            meant = sum(cos(d / 10_000 ** (2 * i / dim)) for i in terms) / ((h + 1) * 8 / heads)
            assert got[h, index].item() == pytest.approx(meant, abs=1e-11)
