"""Three lines in a trainer: FSDP2, DDP, compilation, checkpointing, autocast, saved checkpoints."""

import pytest

CASES = "tests.distributed.trainer_cases"
pytestmark = pytest.mark.slow("trainers around rows that are cut among ranks")


@pytest.mark.parametrize(("data", "spread"), [(1, "gather"), (2, "ring"), (2, "heads")])
def test_fsdp_gets_the_numbers_of_one_process(ranks, data, spread):
    for loss, gradients in ranks.run(4, f"{CASES}:fsdp", spread=spread, data=data):
        assert loss < 1e-5
        assert gradients < 1e-4


@pytest.mark.parametrize("world", [2, 4])
def test_ddp_gets_the_gradients_of_one_process(ranks, world):
    assert max(ranks.run(world, f"{CASES}:ddp")) < 1e-4


@pytest.mark.parametrize("spread", ["gather", "heads", "ring"])
@pytest.mark.parametrize("world", [2, 4])
def test_what_is_computed_again_is_dropped_again(ranks, world, spread):
    assert max(ranks.run(world, f"{CASES}:checkpointed", spread=spread)) < 1e-5


@pytest.mark.parametrize("spread", ["gather", "heads", "ring"])
@pytest.mark.parametrize("world", [2, 4])
def test_autocast_costs_what_it_costs_one_process(ranks, world, spread):
    assert max(ranks.run(world, f"{CASES}:autocast", spread=spread)) < 3


@pytest.mark.compiles
@pytest.mark.parametrize("scores", ["t5", "alibi"])
@pytest.mark.parametrize("spread", ["gather", "heads"])
def test_gather_and_heads_are_full_graphs(ranks, spread, scores):
    assert max(ranks.run(2, f"{CASES}:compiled", spread=spread, scores=scores)) < 1e-4


@pytest.mark.compiles
@pytest.mark.parametrize("spread", ["gather", "heads"])
def test_attention_alone_is_a_full_graph(ranks, spread):
    assert max(ranks.run(2, f"{CASES}:attended", spread=spread, fullgraph=True)) < 1e-5


@pytest.mark.compiles
@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_ring_is_refused_in_a_graph_on_every_rank(ranks, fullgraph):
    for said in ranks.run(2, f"{CASES}:attended", spread="ring", fullgraph=fullgraph):
        assert "'ring' cannot serve: a graph has no sending from rank to rank" in said


@pytest.mark.parametrize("world", [4])
def test_checkpoints_come_back(ranks, world):
    assert max(ranks.run(world, f"{CASES}:saved")) == 0


@pytest.mark.parametrize("again", [True, False, None])
@pytest.mark.parametrize("cut", ["blocks", "encoder"])
def test_gathered_weights_are_no_others_for_a_cache(ranks, cut, again):
    assert max(ranks.run(2, f"{CASES}:decoded", cut=cut, again=again)) < 1e-5
