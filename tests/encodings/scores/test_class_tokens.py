"""Class tokens beside the patches of a window: BEiT's three rows, MViTv2's nothing."""

import pytest
import torch
from transformers import BeitConfig
from transformers.models.beit.modeling_beit import BeitRelativePositionBias

from posenc import DecomposedRelative, SwinBias, SwinV2Bias
from posenc.positions import grid, prefixed


def beit(window=(5, 5), heads=3):
    config = BeitConfig(
        hidden_size=12, num_attention_heads=heads, image_size=[4 * n for n in window], patch_size=4
    )
    theirs = BeitRelativePositionBias(config)
    torch.nn.init.normal_(theirs.relative_position_bias_table)
    ours = SwinBias(heads, window, class_token=True)
    ours.weight.data = theirs.relative_position_bias_table.data
    return ours, theirs


@pytest.mark.parametrize("window", [(5, 5), (2, 2), (1, 1)])  # theirs mixes up unequal sides
def test_beit(window):
    ours, theirs = beit(window)
    points = prefixed(grid(*window))
    assert torch.equal(ours.table(points, points), theirs(window)[0])


@pytest.mark.parametrize("window", [(7, 7), (3, 6)])
def test_beit_at_another_size(window):
    ours, theirs = beit()
    points = prefixed(grid(*window))
    resized = ours.resized(window, interpolation="linear")
    torch.testing.assert_close(resized.table(points, points), theirs(window)[0])
    assert torch.equal(resized.weight[-3:], ours.weight[-3:])


@pytest.mark.parametrize(
    "encoding",
    [SwinBias(2, 3), SwinV2Bias(2, 3, hidden=4), DecomposedRelative(2, 4, 3, std=1.0)],
    ids=lambda each: type(each).__name__,
)
def test_without_rows_of_their_own_they_change_nothing(encoding):
    points, q = grid(3, 3), torch.randn(1, 2, 11, 4)
    scores = torch.randn(1, 2, 11, 11)
    got = encoding(scores, prefixed(points, 2), prefixed(points, 2), q=q)
    assert torch.equal(got[..., :2, :], scores[..., :2, :])
    assert torch.equal(got[..., :2], scores[..., :2])
    alone = encoding(scores[..., 2:, 2:], points, points, q=q[..., 2:, :])
    torch.testing.assert_close(got[..., 2:, 2:], alone)
