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


def by_mvit(q, q_shape, k_shape, rows_y, rows_x):
    """``cal_rel_pos_spatial`` of the authors, for one head: what is added to the scores."""
    rows = []
    for q_size, k_size, table in zip(q_shape, k_shape, (rows_y, rows_x), strict=True):
        q_ratio, k_ratio = max(k_size / q_size, 1.0), max(q_size / k_size, 1.0)
        distance = torch.arange(q_size)[:, None] * q_ratio - torch.arange(k_size) * k_ratio
        rows.append(table[(distance + (k_size - 1) * k_ratio).long()])
    q = q.unflatten(-2, q_shape)
    along_y = torch.einsum("yxc,ykc->yxk", q, rows[0])
    along_x = torch.einsum("yxc,xkc->yxk", q, rows[1])
    return (along_y[..., None] + along_x[..., None, :]).flatten(2).flatten(0, 1)


@pytest.mark.parametrize(
    ("q_shape", "k_shape"),
    [((4, 4), (2, 2)), ((8, 6), (2, 3)), ((6, 4), (6, 4)), ((2, 2), (4, 4)), ((3, 4), (6, 4))],
)
def test_coarser_keys_and_queries_are_mvits(q_shape, k_shape):
    size = [max(pair) for pair in zip(q_shape, k_shape, strict=True)]
    q_step, k_step = (
        torch.tensor([whole // part for whole, part in zip(size, shape, strict=True)])
        for shape in (q_shape, k_shape)
    )
    encoding = DecomposedRelative(
        1, WIDTH, tuple(size), key_stride=tuple(k_step.tolist()), std=1.0, dtype=torch.float64
    )
    queries, keys = grid(*q_shape) * q_step, grid(*k_shape) * k_step
    q = torch.randn(1, 1, len(queries), WIDTH, dtype=torch.float64)
    got = encoding(torch.zeros(1, 1, len(queries), len(keys), dtype=torch.float64), queries, keys,
                   q=q)  # fmt: skip
    want = by_mvit(q[0, 0], q_shape, k_shape, encoding.vertical, encoding.horizontal)
    torch.testing.assert_close(got[0, 0], want)
