"""A cache that is cut among ranks gives what a whole one gives."""

import pytest
import torch

CASES = "tests.distributed.decoding_cases"


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize(
    ("scores", "more"),
    [("alibi", {}), ("t5", {}), ("alibi", {"window": 3}), ("t5", {"softcap": 2.0, "sinks": True})],
)
def test_parts_of_a_cache_merge_to_the_whole(ranks, world, scores, more):
    for dtype, bound in ((torch.float64, 1e-13), (torch.float32, 3e-6)):
        found = ranks.run(world, f"{CASES}:decodes", scores=scores, dtype=dtype, **more)
        assert max(found) < bound


@pytest.mark.parametrize("world", [2, 4])
def test_queries_are_not_taken_for_padding_that_stands_where_they_do(ranks, world):
    assert max(ranks.run(world, f"{CASES}:at_the_place_of_padding")) < 1e-12
