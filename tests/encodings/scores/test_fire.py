"""FIRE against plain loops written from its paper."""

import pytest
import torch

from posenc import FIRE


def test_its_argument_never_leaves_the_trained_range():
    """With a network that passes its argument on: from 0 at the query to 1 at the first key."""
    fire = FIRE(1, hidden=1)
    with torch.no_grad():
        for layer in (fire.expand, fire.contract):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    for q in (600, 10**5, 10**9):
        row = fire.table(torch.tensor([q]), torch.arange(0, q + 1, q // 100))[0, 0]
        assert row.amax() <= 1
        assert row[0].item() == pytest.approx(1.0, abs=1e-5)
        assert (row.diff() < 0).all()
    assert fire.table(torch.tensor([40]), torch.tensor([40])).item() == 0
