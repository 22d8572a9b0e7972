"""Dot products, closest pairs and uniqueness against brute force and closed forms."""

from math import cos, sqrt

import pytest
import torch

from posenc import Learned, Sinusoidal
from posenc.inspection.similarity import (
    closest_pair,
    dot_product_profile,
    dot_products,
    unique_up_to,
)

CONVENTIONS = ["paper", "concatenated", "tensor2tensor", "per_dimension", "double_exponent"]


@pytest.mark.parametrize("position", [0, 7, 10**9])
def test_the_profile_is_a_sum_of_cosines_wherever_it_begins(position):
    profile = dot_product_profile(Sinusoidal(16), 40, position=position)
    for k in (0, 1, 10, 39):
        meant = sum(cos(k / 10_000 ** (2 * i / 16)) for i in range(8))
        assert profile[k].item() == pytest.approx(meant, abs=1e-12)


def test_the_matrix_of_a_paired_convention_is_toeplitz():
    gram = dot_products(Sinusoidal(16), 30)
    profile = dot_product_profile(Sinusoidal(16), 30)
    index = (torch.arange(30)[:, None] - torch.arange(30)).abs()
    torch.testing.assert_close(gram, profile[index], rtol=0, atol=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("dim", "base"), [(2, 10_000.0), (6, 10.0), (8, 10_000.0)])
def test_the_closest_pair_is_that_of_brute_force(convention, dim, base):
    encoding = Sinusoidal(dim, base, convention=convention) if (dim, convention) != (
        2, "tensor2tensor") else Sinusoidal(4, base, convention=convention)  # fmt: skip
    rows = encoding.table(torch.arange(90), dtype=torch.float64)
    away = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    away.fill_diagonal_(torch.inf)
    pair = closest_pair(encoding, 90)
    assert pair.distance == pytest.approx(away.min().item(), abs=1e-12)
    assert away[pair.first, pair.second].item() == pytest.approx(pair.distance, abs=1e-12)


def test_pairs_across_blocks_are_found(monkeypatch):
    import posenc.inspection.similarity as similarity

    encoding = Sinusoidal(3, convention="double_exponent")
    whole = closest_pair(encoding, 50)
    monkeypatch.setattr(similarity, "BLOCK", 7)
    assert closest_pair(encoding, 50) == whole


def test_two_columns_nearly_repeat_after_seven_turns():
    pair = closest_pair(Sinusoidal(2), 45)
    assert (pair.first, pair.second) == (0, 44)
    assert pair.distance == pytest.approx(sqrt(2 - 2 * cos(44)), abs=1e-12)


def test_uniqueness_in_narrow_numbers():
    assert unique_up_to(Sinusoidal(128), 4096, dtype=torch.bfloat16) == 4096
    assert unique_up_to(Sinusoidal(2), 4096, dtype=torch.bfloat16) < 4096 / 3
    assert unique_up_to(Learned(4, 64), 64) == 64


def test_a_pair_needs_two():
    with pytest.raises(ValueError, match="length is 1; it must be"):
        closest_pair(Sinusoidal(4), 1)
