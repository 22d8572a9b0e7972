"""Swin's table of biases against transformers' attention, and on a grid by hand."""

import pytest
import torch
from transformers import SwinConfig
from transformers.models.swin.modeling_swin import SwinAttention, SwinRelativePositionBias

from posenc import SwinBias
from posenc.positions import grid


@pytest.mark.parametrize("window", [(7, 7), (3, 5), (1, 4)])
def test_the_table_is_that_of_transformers(window):
    theirs, ours = SwinRelativePositionBias(3, window), SwinBias(3, window)
    theirs.relative_position_bias_table.data = ours.weight.data
    points = grid(*window)
    assert torch.equal(ours.table(points, points), theirs()[0])


def test_attention_is_that_of_transformers():
    torch.manual_seed(0)
    theirs = SwinAttention(SwinConfig(attn_implementation="eager"), 24, 3, 4).eval()
    torch.nn.init.normal_(theirs.relative_position_bias.relative_position_bias_table)
    ours, points, x = SwinBias(3, 4), grid(4, 4), torch.randn(2, 16, 24)
    ours.weight.data = theirs.relative_position_bias.relative_position_bias_table.data
    q, k = (
        map_(x).unflatten(-1, (3, 8)).transpose(1, 2) for map_ in (theirs.q_proj, theirs.k_proj)
    )
    weights = ours(q @ k.mT / 8**0.5, points, points).softmax(-1)
    torch.testing.assert_close(weights, theirs(x)[1])
