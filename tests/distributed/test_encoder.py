"""An encoder on cut rows gives what it gives on whole ones, and learns the same."""

import pytest
import torch

CASES = "tests.distributed.encoder_cases"


@pytest.mark.parametrize(
    ("world", "described", "layout", "spread", "window"),
    [
        (2, "packed", "zigzag_by_document", "ring", None),
        (4, "packed-padded", "striped", None, [None, 5]),
        (2, "packed", "zigzag", "heads", None),
        # Of four ranks one has padding alone: its gradients are zeros, which others wait for.
        (4, "short", "zigzag", "gather", None),
        (4, "short", "zigzag", "ring", None),
    ],
)
def test_results_and_gradients_are_those_of_one_process(
    ranks, world, described, layout, spread, window
):
    given = {"described": described, "layout": layout, "spread": spread, "window": window}
    assert max(ranks.run(world, f"{CASES}:encodes", **given)) < 1e-12


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


def test_weights_cannot_be_dropped(ranks):
    assert all("dropout" in told for told in ranks.run(2, f"{CASES}:refusal"))
