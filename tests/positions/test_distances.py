"""Distances: Python's integers, as far as an int64 goes, and never of the other sign."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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
