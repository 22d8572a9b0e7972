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


@pytest.mark.compiles
@pytest.mark.parametrize("scores", ["t5", "alibi"])
@pytest.mark.parametrize("spread", ["gather", "heads"])
def test_gather_and_heads_are_full_graphs(ranks, spread, scores):
    assert max(ranks.run(2, f"{CASES}:compiled", spread=spread, scores=scores)) < 1e-4
