"""Rows are cut and joined without loss, and ranks that mean different things all hear of it."""

import pytest

CASES = "tests.distributed.shards_cases"
LAYOUTS = ["contiguous", "zigzag", "striped", "zigzag_by_document"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_and_join_are_inverses(ranks, layout):
    for world in (1, 2, 4):
        assert all(ranks.run(world, f"{CASES}:round_trip", layout=layout))


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_weighed_means_of_ranks_are_the_mean_of_all_tokens(ranks, layout):
    for world in (2, 4):
        assert max(ranks.run(world, f"{CASES}:means", layout=layout)) < 1e-13


def test_boundaries_of_documents_are_told_for_all_rows(ranks):
    ids, plain = ranks.run(2, f"{CASES}:boundaries")[0]
    assert ids == [0, 5, 9, 11, 13, 22]
    assert plain == [0, 6]


def test_unequal_arguments_are_the_same_error_on_every_rank(ranks):
    told = ranks.run(2, f"{CASES}:refused", arguments=[{"length": 8}, {"length": 10}])
    assert told[0] == told[1]
    assert "rank 0: {'length': 8" in told[0]
    assert "rank 1: {'length': 10" in told[0]
