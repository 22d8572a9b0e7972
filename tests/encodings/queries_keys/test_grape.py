"""GRAPE: the exponential of its generator by torch's own, and a rotation in one plane."""

import pytest
import torch
from mpmath import mp, mpf

from posenc import GRAPE

DIM = 6


@pytest.fixture
def grape():
    torch.manual_seed(0)
    return GRAPE(DIM, heads=2, speed=0.7, std=0.6).double()


def test_a_table_is_right_far_out(grape):
    position = 10**6 + 3
    with mp.workdps(50):
        for head in range(2):
            a, b = ([mpf(v) for v in row.tolist()] for row in grape.generators[:, head])
            inner = sum(x * y for x, y in zip(a, b, strict=True))
            s = mp.sqrt(sum(x * x for x in a) * sum(y * y for y in b) - inner**2)
            t = position * mpf(0.7) * s
            once, twice = grape.table([position], dtype=torch.float64)[0, :, head].tolist()
            assert once == pytest.approx(float(mp.sin(t) / s), abs=1e-9)
            assert twice == pytest.approx(float((1 - mp.cos(t)) / s**2), abs=1e-9)


def test_vectors_that_are_nearly_parallel_lose_no_digits():
    grape = GRAPE(8, heads=1).double()
    with torch.no_grad():
        grape.generators[1] = 1.7 * grape.generators[0] + 1e-6 * grape.generators[1]
    a, b = ([mpf(entry) for entry in vector[0].tolist()] for vector in grape.generators)
    with mp.workdps(40):
        along = sum(x * y for x, y in zip(a, b, strict=True)) ** 2
        speed = mp.sqrt(sum(x * x for x in a) * sum(x * x for x in b) - along)
        expected = float(mp.sin(1000 * speed) / speed)
    table = grape.table(torch.tensor([1000]), dtype=torch.float64)
    assert float(table[0, 0, 0]) == pytest.approx(expected, rel=1e-13)
