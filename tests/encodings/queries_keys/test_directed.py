"""Rotary encodings of points whose pairs look in directions of their own."""

from fractions import Fraction

import mpmath
import pytest
import torch

from posenc import DirectedRotary
from posenc.encodings.queries_keys.directed import golden_gate_vectors
from posenc.positions import Coordinates


@pytest.mark.parametrize("scale", [None, (Fraction(1, 3), Fraction(1), Fraction(1, 1000))])
def test_angles_of_several_axes_are_exact(scale):
    """Correctly rounded where float64 has no digit left, against 100 digits."""
    vectors = golden_gate_vectors(6, axes=3)[0]
    generator = torch.Generator().manual_seed(2)
    steps = torch.randint(-(2**61), 2**61, (5, 3), generator=generator)
    points = steps if scale is None else Coordinates(steps, scale=scale)
    table = DirectedRotary(vectors).table(points)
    with mpmath.workdps(100):
        for row in range(5):
            for pair in range(3):
                angle = sum(
                    mpmath.mpf(float(vectors[pair, axis])) * int(steps[row, axis])
                    * (1 if scale is None else mpmath.mpf(scale[axis].numerator)
                       / scale[axis].denominator)
                    for axis in range(3)
                )  # fmt: skip
                want = torch.tensor([float(mpmath.cos(angle)), float(mpmath.sin(angle))]).float()
                assert torch.equal(table[row, :, pair], want)
