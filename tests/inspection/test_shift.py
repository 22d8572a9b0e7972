"""The shift map: exact where sines and cosines share frequencies, and honest where they do not."""

import pytest
import torch

from posenc import Learned, Sinusoidal
from posenc.inspection.shift import shift_map


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


@pytest.mark.parametrize("convention", ["per_dimension", "per_dimension_one_based", "paper"])
@pytest.mark.parametrize("dim", [5, 7])
def test_at_base_one_a_map_exists_by_accident(convention, dim):
    """Every power of 1 is 1, and the other channels tell all of the next position."""
    shift = shift_map(Sinusoidal(dim, 1.0, convention), 5)
    assert not shift.exact
    assert shift.residual < 1e-12
    assert shift.reason.endswith("at base 1 all channels have one frequency")
    alone = shift_map(Sinusoidal(1, 1.0, convention), 5)
    assert alone.residual > 0.9
    assert "at base 1" not in alone.reason
