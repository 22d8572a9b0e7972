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


def test_many_numbers_become_the_floats_that_few_do():
    wide = Coordinates(torch.arange(144_000).view(72_000, 2).mT, scale=Fraction(1, 3))
    each = torch.stack([wide[row, :9_000].floats(torch.float32) for row in range(2)])
    assert torch.equal(wide.floats(torch.float32)[:, :9_000], each)


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


def test_one_axis_has_distances():
    """Along a last axis with a scale an entry, which is none of tokens, there are none."""
    points = Coordinates([1, 2]) * Fraction(1, 2)
    apart = Coordinates.stack([points[0], points[1] / 3], dim=-1)
    for positions in ((apart, apart), (apart, torch.arange(2))):
        with pytest.raises(ValueError, match="one scale"):
            float_distances(*positions, torch.float64)
