"""An encoder whose keys and values are cut among ranks decodes as one that has them all."""

import pytest

CASES = "tests.distributed.cut_cache_cases"


@pytest.mark.parametrize(
    ("scores", "padded", "read"),
    [
        ("none", False, "by all"),
        ("alibi", True, "by all"),
        ("t5", True, "zigzag gather"),
        ("alibi", False, "striped ring"),
        ("none", True, "contiguous ring"),
    ],
)
def test_decoding_gives_what_one_pass_gives(ranks, scores, padded, read):
    for world in (1, 2, 4):
        found = ranks.run(world, f"{CASES}:decodes", scores=scores, padded=padded, read=read)
        assert max(found) < 1e-12


def test_what_is_kept_can_be_changed(ranks):
    for world in (1, 2, 4):
        assert max(ranks.run(world, f"{CASES}:takes_back")) < 1e-12


def test_a_step_moves_results_and_no_keys(ranks):
    batch, heads, width = 2, 4, 4
    assert ranks.run(4, f"{CASES}:moves") == [batch * heads * (width + 1)] * 4
