"""Heads cut among ranks with ``parallelize_module`` give what one process gives, and learn it."""

import pytest

REST = pytest.mark.slow("more encodings whose heads are cut among ranks")
CASES = "tests.distributed.head_parallel_cases"


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    "scores",
    [
        "t5",
        "fire",
        "some",
        *(pytest.param(s, marks=REST) for s in ("none", "alibi", "kerple", "sum", "cyclic")),
    ],
)
def test_results_and_gradients_are_those_of_one_process(ranks, scores):
    for errors in ranks.run(2, f"{CASES}:encodes", scores=scores):
        assert max(errors) < 1e-12


@REST
def test_four_ranks_and_packed_rows(ranks):
    for errors in ranks.run(4, f"{CASES}:encodes", scores="t5", packed=True):
        assert max(errors) < 1e-12


def test_a_rank_holds_what_belongs_to_its_heads(ranks):
    for rank, own in enumerate(ranks.run(4, f"{CASES}:held")):
        # Slope h of 8 heads is 2^−(h + 1).
        assert own["alibi"] == [-(2.0 ** -(2 * rank + h)) for h in (1, 2)]
        assert own["t5"] == [32, 2]
        assert own["kerple"] == [2]
        assert f"{2 * rank} … {2 * rank + 1} of T5Bias" in own["told"][0]


def test_decoding_keeps_the_keys_of_own_heads(ranks):
    assert max(ranks.run(2, f"{CASES}:decodes")) < 1e-12


@pytest.mark.parametrize(
    "spread", ["ring", *(pytest.param(s, marks=REST) for s in ("gather", "heads"))]
)
def test_heads_and_tokens_are_cut_together(ranks, spread):
    assert max(ranks.run(4, f"{CASES}:beside_shards", spread=spread)) < 1e-12
