"""Distances: Python's integers, as far as an int64 goes, and never of the other sign."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import (
    ALiBi,
    CoPE,
    DeBERTa,
    Sandwich,
    Shaw,
    SwinBias,
    T5Bias,
    TransformerXL,
)
from posenc.positions.distances import FARTHEST, checked_distances, pair_distances

INT64 = st.integers(-(2**63), 2**63 - 1)
ROW = st.lists(INT64 | st.integers(-9, 9), min_size=1, max_size=4)


@given(queries=ROW, keys=ROW)
def test_they_are_the_whole_numbers_cut_off_at_the_ends(queries, keys):
    wanted = [[min(max(q - k, -FARTHEST), FARTHEST) for k in keys] for q in queries]
    rows = torch.tensor(queries), torch.tensor(keys)
    assert pair_distances(*rows).tolist() == wanted
    # Nobody can look under vmap.
    batched = torch.func.vmap(pair_distances)(rows[0][None], rows[1][None])
    assert batched[0].tolist() == wanted


@given(queries=ROW, keys=ROW)
def test_what_int64_does_not_hold_is_refused_where_it_is_a_number(queries, keys):
    true = [[q - k for k in keys] for q in queries]
    if all(abs(each) <= FARTHEST for row in true for each in row):
        assert checked_distances(queries, keys).tolist() == true
    else:
        with pytest.raises(ValueError, match=r"2\^63 or more"):
            checked_distances(queries, keys)


@pytest.mark.parametrize(
    "encoding",
    [
        ALiBi(2),
        Sandwich(2, dim=4),
        T5Bias(2),
        Shaw(2, 4, reach=2),
        DeBERTa(2, 4),
        TransformerXL(2, 4),
        CoPE(2, 4, 3),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_no_encoding_takes_a_wrapped_distance(encoding):
    far = [2**62], [-(2**62)]
    with pytest.raises(ValueError, match=r"2\^63 or more"):
        encoding.table(*far)


def test_points_of_a_grid_are_not_near_for_being_far():
    """A wrapped difference may be a small one."""
    with pytest.raises(ValueError, match=r"2\^63 or more"):
        SwinBias(1, 4).table([[2**63 - 1, 0]], [[2**17 - 2**63, 0]])  # below it are marks
