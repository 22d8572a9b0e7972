"""Rotary encodings of points whose pairs look in directions of their own."""

from fractions import Fraction

import mpmath
import pytest
import torch

from posenc import AxialForm, AxialRotary, DirectedRotary
from posenc.encodings.queries_keys.directions import golden_gate_vectors
from posenc.frequencies import FromCheckpoint
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


def test_vectors_along_the_axes_are_axial():
    """Carries from word to word: angles of two axes, of which one has a frequency of 0."""
    generator = torch.Generator().manual_seed(3)
    along = torch.rand(2, 4, generator=generator, dtype=torch.float64)
    vectors = torch.zeros(8, 2, dtype=torch.float64)
    vectors[:4, 0], vectors[4:, 1] = along
    form = AxialForm("blocks", "yx", "", (8, 8), pairing="half")
    schedules = [FromCheckpoint(each) for each in along]
    positions = torch.randint(-(2**62), 2**62, (50, 2), generator=generator)
    want = AxialRotary(16, form=form, schedules=schedules).table(positions)
    assert torch.equal(DirectedRotary(vectors).table(positions), want)
