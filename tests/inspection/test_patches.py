"""Similarity of patches: cosines of rows, and for rotary tables mean cosines of angles."""

import math

import pytest
import torch

from posenc import AxialRotary, AxialSinusoidal
from posenc.inspection.patches import patch_similarity
from posenc.positions import grid


def test_the_similarity_of_sines_is_a_mean_of_cosines():
    """MAE: the mean of cos(Δy ω) and cos(Δx ω) over all ω."""
    size, patch, base = (4, 6), (1, 2), 100.0
    got = patch_similarity(
        AxialSinusoidal(16, base=base).table(grid(*size), dtype=torch.float64), size, patch
    )
    frequencies = base ** (-torch.arange(4).double() / 4)
    apart = (grid(*size) - torch.tensor(patch)).double()
    expected = (apart.unsqueeze(-1) * frequencies).cos().mean((-1, -2)).view(size)
    torch.testing.assert_close(got, expected)


def test_a_rotary_table_gives_what_is_left_of_equal_queries_and_keys():
    rotary, size, patch = AxialRotary(16), (3, 4), (2, 0)
    got = patch_similarity(rotary.table(grid(*size), dtype=torch.float64), size, patch)
    ones = torch.ones(1, 12, 16, dtype=torch.float64)
    q, k = rotary(ones, ones, grid(*size))
    torch.testing.assert_close(got.flatten(), (q @ k.mT / 16)[0, 8])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((torch.ones(5, 2), (2, 2), (0, 0)), "table has 5 rows; a grid of .2, 2. has 4 points."),
        ((torch.ones(4, 2), (2, 2), (0, 2)), "patch is .0, 2.; it must be a point of the grid"),
        ((torch.ones(4, 2), (2, 2), (0,)), "patch is"),
        ((torch.zeros(4, 2), (2, 2), (0, 0)), "A row of the table is zero"),
    ],
)
def test_what_it_refuses(arguments, text):
    with pytest.raises(ValueError, match=text):
        patch_similarity(*arguments)


def test_a_complex_table_is_refused_and_its_parts_are_taken():
    """Cast to reals it would lose its sines."""
    turns = torch.polar(torch.ones(3, 2), torch.tensor([[0.0, 0.0], [1.0, 0.1], [2.0, 0.2]]))
    with pytest.raises(TypeError, match=r"Pass torch.view_as_real\(table\)"):
        patch_similarity(turns, (3,), (0,))
    got = patch_similarity(torch.view_as_real(turns), (3,), (0,))
    assert got[1].item() == pytest.approx((math.cos(1.0) + math.cos(0.1)) / 2, rel=1e-6)
