"""Learned rotations of points: LieRE, ComRoPE and STRING, against their authors' formulas."""

from fractions import Fraction

import pytest
import torch
from tests.encodings.content import wide as random
from torch import nn

from posenc import CayleySTRING, CirculantSTRING
from posenc.positions import Coordinates, grid


def points(height: int, width: int) -> Coordinates:
    """From 0 to 1 along each axis."""
    scales = (Fraction(1, height - 1), Fraction(1, width - 1))
    return Coordinates(grid(height, width), scale=scales)


def test_cayley_string_is_rotary_after_an_orthogonal_matrix():
    torch.manual_seed(3)
    encoding = CayleySTRING(8, std=0.7, dtype=torch.float64)
    basis = encoding.basis()
    upper = encoding.skew.detach().triu(1)
    one, skew = torch.eye(8, dtype=torch.float64), upper - upper.mT
    torch.testing.assert_close(basis.detach() @ (one + skew), one - skew)
    torch.testing.assert_close(basis @ basis.mT, one)
    # Public code: P as a layer, angles as positions @ frequencies, neighbors as complex numbers.
    layer = nn.Linear(8, 8, bias=False, dtype=torch.float64)
    layer.weight = nn.Parameter(basis.detach())
    positions = points(3, 4)
    turns = positions.floats() @ encoding.frequencies.detach()
    q = random(2, 3, 12, 8)
    pairs = torch.view_as_complex(layer(q).unflatten(-1, (-1, 2)).contiguous())
    wanted = torch.view_as_real(pairs * torch.polar(torch.ones_like(turns), turns)).flatten(-2)
    got = encoding.encode_queries(q, encoding.table(positions, dtype=torch.float64))
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("width", [8, 9, 3])
def test_circulant_string_is_the_exponential_of_circulant_matrices(width):
    torch.manual_seed(4)
    encoding = CirculantSTRING(width, std=1.0, dtype=torch.float64)
    circulants = torch.stack([
        torch.stack([column.roll(shift) for shift in range(width)], dim=1)
        for column in encoding.columns.detach()
    ])  # fmt: skip
    skew = circulants - circulants.mT
    positions = points(3, 4)
    exponent = torch.einsum("sa,aij->sij", positions.floats(), skew)
    wanted = torch.linalg.matrix_exp(exponent)
    q = random(2, 3, 12, width)
    got = encoding.encode_queries(q, encoding.table(positions, dtype=torch.float64))
    torch.testing.assert_close(got, torch.einsum("sij,bhsj->bhsi", wanted, q))
