"""Distances as floats: what exact fractions come to when they are rounded once."""

from fractions import Fraction

import pytest
import torch

from posenc.positions import Coordinates, checked_distances, float_distances

HOUR = Coordinates([0.1, 3600.1, 1e-5, -1e-5, 1 / 3, 7, -1800.3])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1, Fraction(1, 30), Fraction(2**70), Fraction(3, 4)])
def test_distances_are_rounded_once(scale, dtype):
    """0 on the diagonal, and opposites across it."""
    times = HOUR * scale
    made, numbers = float_distances(times, times, dtype), times.tolist()
    assert torch.equal(made, -made.mT)
    for row, q in zip(made.tolist(), numbers, strict=True):
        for value, k in zip(row, numbers, strict=True):
            unit = torch.finfo(dtype).eps * abs(q - k)
            assert abs(Fraction(value) - (q - k)) <= unit * Fraction(
                3, 2 if dtype.itemsize > 4 else 5
            )


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1, 30), Fraction(5, 7)])
@pytest.mark.parametrize("reach", [2**14, 2**52, 2**52 + 1, 2**62 - 1])
def test_distances_of_one_part_are_whole_ones_times_the_scale(reach, scale):
    draw = torch.Generator().manual_seed(10)
    steps = torch.randint(-reach, reach + 1, (2, 9), generator=draw)
    steps[:, 0], steps[:, 1] = reach, -reach
    for q, k in ((steps, steps), (steps[:1], steps), (steps[0], steps[1])):
        one, other = Coordinates(q, scale=scale), Coordinates(k, scale=scale)
        want = Coordinates(checked_distances(q, k), scale=scale)
        for dtype in (torch.float64, torch.float32):
            assert torch.equal(float_distances(one, other, dtype), want.floats(dtype))
