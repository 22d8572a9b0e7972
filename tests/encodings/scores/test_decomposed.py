"""Decomposed relative positions against transformers' SAM, of its size and of others."""

import pytest
import torch
from transformers import SamVisionConfig
from transformers.models.sam.modeling_sam import SamVisionAttention

from posenc import DecomposedRelative
from posenc.positions import grid

HEADS, WIDTH = 2, 8


def sam(size):
    torch.manual_seed(0)
    config = SamVisionConfig(hidden_size=HEADS * WIDTH, num_attention_heads=HEADS)
    theirs = SamVisionAttention(config, size).eval()
    torch.nn.init.normal_(theirs.rel_pos_h)
    torch.nn.init.normal_(theirs.rel_pos_w)
    ours = DecomposedRelative(HEADS, WIDTH, size)
    ours.vertical.data, ours.horizontal.data = theirs.rel_pos_h.data, theirs.rel_pos_w.data
    return theirs, ours


@pytest.mark.parametrize("image", [(5, 5), (3, 4), (7, 9)])
def test_attention_is_that_of_sam(image):
    theirs, ours = sam(5)
    x, points = torch.randn(2, *image, HEADS * WIDTH), grid(*image)
    maps = theirs.qkv(x).flatten(1, 2).unflatten(-1, (3, HEADS, WIDTH)).permute(2, 0, 3, 1, 4)
    q, k = maps[0], maps[1]
    weights = ours.resized(image)(q @ k.mT / WIDTH**0.5, points, points, q=q).softmax(-1)
    torch.testing.assert_close(weights.flatten(0, 1), theirs(x)[1], atol=2e-6, rtol=1e-5)


def test_the_same_size_is_the_same_encoding():
    _, ours = sam(5)
    again = ours.resized(5)
    assert torch.equal(again.vertical, ours.vertical)
    assert torch.equal(again.horizontal, ours.horizontal)


def test_it_is_one_product_a_pair_and_axis():
    encoding = DecomposedRelative(HEADS, WIDTH, (2, 3), std=1.0)
    points, q = grid(2, 3), torch.randn(1, HEADS, 6, WIDTH)
    got = encoding(torch.zeros(1, HEADS, 6, 6), points, points, q=q)
    for head in range(HEADS):
        for i, (y, x) in enumerate(points.tolist()):
            for j, (v, u) in enumerate(points.tolist()):
                row = encoding.vertical[y - v + 1] + encoding.horizontal[x - u + 2]
                torch.testing.assert_close(got[0, head, i, j], q[0, head, i] @ row)


def test_a_decoded_row_is_the_last_row():
    encoding, points = DecomposedRelative(HEADS, WIDTH, 3), grid(3, 3)
    q, scores = torch.randn(1, HEADS, 9, WIDTH), torch.randn(1, HEADS, 9, 9)
    whole = encoding(scores, points, points, q=q)
    row = encoding(scores[..., -1:, :], points[-1:], points, q=q[..., -1:, :])
    torch.testing.assert_close(row, whole[..., -1:, :])


def test_zeros_change_nothing():
    encoding, points = DecomposedRelative(HEADS, WIDTH, 3, std=0.0), grid(3, 3)
    scores = torch.randn(1, HEADS, 9, 9)
    assert torch.equal(encoding(scores, points, points, q=torch.randn(1, HEADS, 9, WIDTH)), scores)


def test_what_does_not_fit_is_told():
    encoding, points = DecomposedRelative(HEADS, WIDTH, 3), grid(3, 3)
    scores, q = torch.zeros(1, HEADS, 9, 9), torch.zeros(1, HEADS, 9, WIDTH)
    with pytest.raises(ValueError, match=r"given no q; it depends on content. Pass q="):
        encoding(scores, points, points)
    with pytest.raises(ValueError, match=r"q has heads of width 4; .* built for head_dim 8"):
        encoding(scores, points, points, q=q[..., :4])
    with pytest.raises(ValueError, match="built for 2 heads; scores have 3"):
        encoding(torch.zeros(1, 3, 9, 9), points, points, q=q)
    with pytest.raises(ValueError, match=r"lie \(3, 2\) apart.*resized"):
        encoding.table(grid(4, 3), grid(4, 3))
    with pytest.raises(ValueError, match="size is 0"):
        DecomposedRelative(1, 8, 0)
    with pytest.raises(ValueError, match="head_dim 0; each must be 1 or more"):
        DecomposedRelative(1, 0, 3)
