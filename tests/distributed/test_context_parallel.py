"""Torch's own context parallelism: refused where we would be local, and right by our recipe."""

import pytest

CASES = "tests.distributed.context_parallel_cases"
pytestmark = pytest.mark.slow("torch's own context parallelism, which loads its compiler")


def test_inside_it_attention_refuses(ranks):
    for inside in ranks.run(2, f"{CASES}:refused"):
        assert "as torch's context_parallel does" in inside


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("world", "scores", "balancer"),
    [(2, "t5", None), (2, "alibi", "head-tail"), (4, "t5", "head-tail"), (2, "t5", "documents")],
)
def test_flex_attention_knows_where_gathered_keys_stand(ranks, world, scores, balancer):
    found = ranks.run(world, f"{CASES}:biased", scores=scores, balancer=balancer)
    assert max(right for right, _ in found) < 2e-6
    assert max(wrong for _, wrong in found) > 1e-2  # what positions from 0 would do
