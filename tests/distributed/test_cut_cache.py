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


def test_what_a_cut_cache_cannot_do_is_refused(ranks):
    for told in ranks.run(2, f"{CASES}:refusals"):
        nouns = {"whole cache": "KeyShards", "filled": "15 tokens", "documents": "document",
                 "cut documents": "document", "counting": "CoPE", "counting, cut": "CoPE",
                 "both ways": "is_causal", "spread": "spread", "keys for tokens": "KeyValueCache",
                 "size": "size", "run": "run"}  # fmt: skip
        assert told.keys() == nouns.keys()
        assert all(noun in told[name] for name, noun in nouns.items())


def test_gradients_are_refused(ranks):
    assert all("gradients" in told for told in ranks.run(2, f"{CASES}:graded"))
