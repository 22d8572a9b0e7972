"""The closest pair by sums alone, against every pair measured."""

import pytest
import torch

from posenc import Sinusoidal
from posenc.inspection.closest import closest_positions
from posenc.inspection.similarity import closest_pair

UNPAIRED = ["per_dimension", "per_dimension_one_based", "double_exponent"]


@pytest.mark.parametrize("convention", UNPAIRED)
@pytest.mark.parametrize(
    ("dim", "base", "length"),
    [(8, 1e4, 60), (7, 50.0, 300), (64, 1e4, 500), (2, 1e4, 400), (9, 1, 99)],
)
def test_no_pair_is_closer(convention, dim, base, length):
    encoding = Sinusoidal(dim, base, convention)
    rows = encoding.table(torch.arange(length), dtype=torch.float64)
    first, second = closest_positions(encoding, rows)
    assert 0 <= first < second < length
    apart = (rows[first] - rows[second]).norm().item()
    assert apart == pytest.approx(torch.pdist(rows).min().item(), rel=1e-9)


def test_an_offset_of_the_count_and_an_odd_paper_width_are_taken_along():
    for encoding in (Sinusoidal(9, offset=5), Sinusoidal(8, convention="per_dimension", offset=2)):
        rows = encoding.table(torch.arange(80), dtype=torch.float64)
        found = closest_pair(encoding, 80)
        assert found.distance == pytest.approx(torch.pdist(rows).min().item(), rel=1e-9)


def test_base_one_comes_near_after_seven_turns():
    # At base 1 every channel turns once in 2π, and 44 is 7.003 turns.
    found = closest_pair(Sinusoidal(3, 1.0, "per_dimension"), 60)
    assert found.second - found.first == 44


def test_of_one_column_the_nearest_are_found_below_the_rounding_of_squares():
    encoding = Sinusoidal(1)
    column = encoding.table(torch.arange(60_000), dtype=torch.float64)[:, 0]
    found = closest_pair(encoding, 60_000)
    assert found.distance == column.sort().values.diff().min().item()
    assert found.distance == (column[found.first] - column[found.second]).abs().item()
    assert found.first < found.second


@pytest.mark.parametrize(
    ("dim", "base", "convention", "length"),
    [
        (2, 1e12, "per_dimension_one_based", 700),
        (4, 1e9, "per_dimension_one_based", 300),
        (2, 1e30, "double_exponent", 300),
        (2, 1.0000001, "per_dimension", 1500),
    ],
)
def test_rows_nearer_than_squares_can_tell(dim, base, convention, length):
    encoding = Sinusoidal(dim, base, convention)
    rows = encoding.table(torch.arange(length), dtype=torch.float64)
    found = closest_pair(encoding, length)
    assert found.distance == (rows[found.first] - rows[found.second]).norm().item()
    assert found.distance == pytest.approx(torch.pdist(rows).min().item(), rel=1e-12, abs=0)


def test_at_a_huge_base_the_first_two_are_nearest():
    """sin moves by 10⁻¹² a position, and cos, from its top at 0, by more with each."""
    found = closest_pair(Sinusoidal(2, 1e12, "per_dimension_one_based"), 700)
    assert (found.first, found.second) == (0, 1)


def test_rows_of_another_width_have_no_closest_pair():
    encoding = Sinusoidal(8, convention="per_dimension")
    rows = encoding.table(torch.arange(9), dtype=torch.float64)
    for some in (rows[:, :4], rows[:1], rows[0]):
        with pytest.raises(ValueError, match=r"must be \[length, 8\], two rows or more"):
            closest_positions(encoding, some)
