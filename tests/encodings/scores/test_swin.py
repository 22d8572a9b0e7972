"""Swin's table of biases against transformers' attention, and on a grid by hand."""

import pytest
import torch
from transformers.models.swin.modeling_swin import SwinRelativePositionBias

from posenc import SwinBias
from posenc.positions import grid


@pytest.mark.parametrize("window", [(7, 7), (3, 5), (1, 4)])
def test_the_table_is_that_of_transformers(window):
    theirs, ours = SwinRelativePositionBias(3, window), SwinBias(3, window)
    theirs.relative_position_bias_table.data = ours.weight.data
    points = grid(*window)
    assert torch.equal(ours.table(points, points), theirs()[0])
