"""LevelEmbedding: the sum that Deformable DETR's encoder adds, level by level."""

import re

import pytest
import torch
from transformers.models.deformable_detr.modeling_deformable_detr import (
    DeformableDetrSinePositionEmbedding,
)

from posenc import AxialSinusoidal, LevelEmbedding
from posenc.positions import grid, masked_grid, on_levels, prefixed


def refused(text, error=ValueError):
    return pytest.raises(error, match=re.escape(text))


def test_it_is_deformable_detrs_sum():
    """Theirs: each level's sines by its own mask, plus ``level_embed``, flattened and joined."""
    masks = [torch.zeros(2, 8, 6).bool(), torch.zeros(2, 4, 3).bool(), torch.zeros(2, 2, 2).bool()]
    for shrink, mask in zip((1, 2, 4), masks, strict=True):
        mask[0], mask[1, : 4 // shrink, : -(-6 // shrink)] = True, True
    encoding = LevelEmbedding(AxialSinusoidal(32, "deformable_detr"), 3)
    sines = DeformableDetrSinePositionEmbedding(16, normalize=True)
    expected = [
        sines((2, 1, *mask.shape[1:]), "cpu", torch.float64, mask).flatten(2).mT
        + encoding.weight[level].double()
        for level, mask in enumerate(masks)
    ]
    real = torch.cat([mask.flatten(1) for mask in masks], dim=1)
    got = encoding.table(on_levels([masked_grid(mask) for mask in masks]), dtype=torch.float64)
    torch.testing.assert_close(got[real], torch.cat(expected, dim=1)[real], rtol=0, atol=1e-13)


def test_gradients_reach_each_level_by_its_tokens():
    encoding = LevelEmbedding(AxialSinusoidal(8), 3)
    encoding.table(on_levels([grid(2, 3), grid(1, 1)])).sum().backward()
    assert encoding.weight.grad[:, 0].tolist() == [6, 1, 0]


def test_tokens_without_a_place_have_no_level():
    points = prefixed(on_levels([grid(1, 2), grid(1, 1)]))
    table = LevelEmbedding(AxialSinusoidal(8), 2).table(points)
    assert not table[0].any()
    assert table[1:].all(-1).any()


@pytest.mark.parametrize("level", [-1, 2])
def test_a_level_that_is_not_there_has_no_vector(level):
    with pytest.raises(IndexError):
        LevelEmbedding(AxialSinusoidal(8), 2).table([[0, 0, level]])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LevelEmbedding(AxialSinusoidal(8), 0), "levels is 0"),
        (lambda: LevelEmbedding(AxialSinusoidal(8), std=-1.0), "std is -1.0"),
        (lambda: LevelEmbedding(AxialSinusoidal(8)).table([0]), "have shape (0,)"),
    ],
)
def test_what_it_refuses(make, text):
    with refused(text):
        make()


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
def test_a_narrow_table_is_rounded_once(narrow):
    encoding, points = LevelEmbedding(AxialSinusoidal(16)), on_levels([grid(4, 4), grid(2, 2)])
    wide = encoding.table(points)
    assert torch.equal(encoding.table(points, dtype=narrow), wide.to(narrow))
