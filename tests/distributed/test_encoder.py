"""An encoder on cut rows gives what it gives on whole ones, and learns the same."""

import pytest
import torch

CASES = "tests.distributed.encoder_cases"


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize(
    ("described", "layout", "spread", "window"),
    [
        ("plain", "zigzag", "gather", None),
        ("packed", "zigzag_by_document", "ring", None),
        ("packed-padded", "striped", None, [None, 5]),
        ("padded", "contiguous", "ring", 4),
        ("packed", "zigzag", "heads", None),
        # Of four ranks one has padding alone: its gradients are zeros, which others wait for.
        ("short", "zigzag", "gather", None),
        ("short", "zigzag", "ring", None),
    ],
)
def test_results_and_gradients_are_those_of_one_process(
    ranks, world, described, layout, spread, window
):
    if spread == "heads" and world == 4:
        return  # two key heads do not divide among four ranks
    errors = ranks.run(
        world, f"{CASES}:encodes", described=described, layout=layout, spread=spread, window=window
    )
    assert max(errors) < 1e-12


@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "striped"])
def test_positions_may_be_given(ranks, layout):
    assert max(ranks.run(2, f"{CASES}:at_given_positions", layout=layout)) < 1e-12


@pytest.mark.parametrize(
    ("layout", "spread", "long"),
    [("zigzag", "gather", False), ("striped", "ring", True), ("contiguous", "heads", True)],
)
def test_positions_may_be_coordinates(ranks, layout, spread, long):
    """Sines are rounded to float32 and those of a whole row are the same bits."""
    given = {"layout": layout, "spread": spread, "long": long}
    assert max(ranks.run(2, f"{CASES}:at_coordinates", **given)) < 1e-12


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_hidden_dropout_falls_on_the_same_elements_however_rows_are_cut(ranks, norm):
    whole = torch.tensor(ranks.run(1, f"{CASES}:dropped", layout="contiguous", norm=norm)[0])
    for world, layout in ((2, "zigzag"), (4, "striped"), (4, "contiguous")):
        for part in ranks.run(world, f"{CASES}:dropped", layout=layout, norm=norm):
            assert torch.allclose(torch.tensor(part), whole, rtol=0, atol=1e-12)


def test_what_shards_cannot_do_is_refused(ranks):
    for told in ranks.run(2, f"{CASES}:refusals"):
        nouns = {"weights dropped": "dropout", "whole rows": "x has", "padding": "padding_mask"}
        assert told.keys() == nouns.keys()
        assert all(noun in told[name] for name, noun in nouns.items())
