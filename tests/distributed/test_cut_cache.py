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


@pytest.mark.parametrize("case", ["takes_back", "forgets_a_failed_step"])
def test_what_is_kept_can_be_changed(ranks, case):
    for world in (1, 2, 4):
        assert max(ranks.run(world, f"{CASES}:{case}")) < 1e-12


def test_a_step_moves_results_and_no_keys(ranks):
    batch, heads, width = 2, 4, 4
    assert ranks.run(4, f"{CASES}:moves") == [batch * heads * (width + 1)] * 4


def test_refusals_say_what_to_do(ranks):
    for told in ranks.run(2, f"{CASES}:refusals"):
        assert "Build KeyValueCache(shards=KeyShards(group))" in told["whole cache"]
        assert "holds 15 tokens already" in told["filled"]
        assert "Decode each document as a row" in told["documents"]
        assert "Decode each document as a row" in told["cut documents"]
        assert "CoPE needs the keys of all ranks together" in told["counting"]
        assert "CoPE needs the keys of all ranks together" in told["counting, cut"]
        assert "is_causal=True" in told["both ways"]
        assert "merges results in one way" in told["spread"]
        assert "For cut keys build KeyValueCache" in told["keys for tokens"]
        assert "Leave size out" in told["size"]
        assert "run is 0" in told["run"]
        assert "Give every rank of the group the same" in told["queries differ"]


def test_gradients_are_refused(ranks):
    assert all("Decode under torch.no_grad()" in told for told in ranks.run(2, f"{CASES}:graded"))
