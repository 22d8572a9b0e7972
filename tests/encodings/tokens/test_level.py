"""LevelEmbedding: the sum that Deformable DETR's encoder adds, level by level."""

import torch
from transformers.models.deformable_detr.modeling_deformable_detr import (
    DeformableDetrSinePositionEmbedding,
)

from posenc import AxialSinusoidal, LevelEmbedding
from posenc.positions import masked_grid, on_levels


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
