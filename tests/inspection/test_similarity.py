"""Dot products, closest pairs, uniqueness and shifts, against brute force and closed forms."""

from math import cos, sqrt

import pytest
import torch

import posenc.inspection.similarity as similarity
from posenc import Learned, Sinusoidal
from posenc.inspection.precision import unique_up_to
from posenc.inspection.shift import shift_map
from posenc.inspection.similarity import closest_pair, dot_product_profile


@pytest.mark.parametrize("position", [0, 7, 10**9])
def test_the_profile_is_a_sum_of_cosines_wherever_it_begins(position):
    profile = dot_product_profile(Sinusoidal(16), 40, position=position)
    for k in (0, 1, 10, 39):
        meant = sum(cos(k / 10_000 ** (2 * i / 16)) for i in range(8))
        assert profile[k].item() == pytest.approx(meant, abs=1e-12)


ALONE = "per_dimension_one_based"


@pytest.mark.parametrize(
    ("encoding", "length"),
    [
        *((Sinusoidal(8, 10.0, kind), 90) for kind in ("paper", "concatenated", "tensor2tensor")),
        *((Sinusoidal(dim, 1e4, "per_dimension"), 300) for dim in (2, 7, 64)),
        (Sinusoidal(9, offset=5), 80),
        # Rows nearer than their squares can tell.
        (Sinusoidal(2, 1e12, ALONE), 700),
        (Sinusoidal(2, 1e30, "double_exponent"), 300),
        # Angles that were rounded are no rotation.
        (Sinusoidal(8, offset=100_000, arithmetic="float32"), 45),
    ],
)
def test_the_closest_pair_is_that_of_brute_force(encoding, length):
    rows = encoding.table(torch.arange(length), dtype=torch.float64)
    pair = closest_pair(encoding, length)
    assert 0 <= pair.first < pair.second < length
    apart = (rows[pair.first] - rows[pair.second]).norm().item()
    assert pair.distance == pytest.approx(apart, rel=1e-12)
    assert pair.distance == pytest.approx(torch.pdist(rows).min().item(), rel=1e-9)


def test_pairs_across_blocks_are_found(monkeypatch):
    encoding = Learned(3, 50)
    whole = closest_pair(encoding, 50)
    monkeypatch.setattr(similarity, "BLOCK", 7)
    assert closest_pair(encoding, 50) == whole


def test_columns_nearly_repeat_after_seven_turns():
    pair = closest_pair(Sinusoidal(2), 45)
    assert (pair.first, pair.second) == (0, 44)
    assert pair.distance == pytest.approx(sqrt(2 - 2 * cos(44)), abs=1e-12)


def test_uniqueness_in_narrow_numbers():
    assert unique_up_to(Sinusoidal(128), 4096, dtype=torch.bfloat16) == 4096
    assert unique_up_to(Sinusoidal(2), 4096, dtype=torch.bfloat16) < 4096 / 3
    assert unique_up_to(Learned(4, 64), 64) == 64


@pytest.mark.parametrize("convention", ["paper", "concatenated", "tensor2tensor", "timestep"])
@pytest.mark.parametrize("offset", [1, 10, -3, 10**6, 2**40])
def test_paired_conventions_are_moved_exactly(convention, offset):
    encoding = Sinusoidal(8, convention=convention)
    shift = shift_map(encoding, offset)
    assert shift.exact
    assert shift.residual < 1e-14
    back = shift_map(encoding, -offset).matrix @ shift.matrix
    torch.testing.assert_close(back, torch.eye(8).double(), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        (Sinusoidal(8, convention="per_dimension"), "no common frequency"),
        (Sinusoidal(7, convention="per_dimension_one_based"), "no common frequency"),
        (Sinusoidal(7), "the width is odd: the last sine has no cosine"),
        (Learned(8, 400), "not sinusoidal"),
        (Sinusoidal(8, arithmetic="float32", offset=10**9), "rounded to float32"),
    ],
    ids=str,
)
def test_others_get_the_best_map_with_what_it_misses(encoding, reason):
    shift = shift_map(encoding, 10)
    assert not shift.exact
    assert reason in shift.reason
    assert shift.residual > 1e-4
    rows = encoding.table(torch.arange(256), dtype=torch.float64).detach()
    moved = encoding.table(torch.arange(10, 266), dtype=torch.float64).detach()
    best = (rows @ shift.matrix.mT - moved).square().sum()
    torch.manual_seed(0)
    for _ in range(20):  # no map nearby is better in the sense of least squares
        other = shift.matrix + 1e-3 * torch.randn_like(shift.matrix)
        assert (rows @ other.mT - moved).square().sum() >= best
