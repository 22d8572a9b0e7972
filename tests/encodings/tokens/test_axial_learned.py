"""AxialLearned against the models that learn rows and columns apart."""

import pytest
import torch
from transformers import Florence2Config, Florence2VisionConfig, Gemma4VisionConfig
from transformers.models.detr.modeling_detr import DetrLearnedPositionEmbedding
from transformers.models.florence2.modeling_florence2 import (
    Florence2VisionLearnedAbsolutePositionEmbedding2D,
)
from transformers.models.gemma4.modeling_gemma4 import Gemma4VisionPatchEmbedder

from posenc import AxialLearned
from posenc.positions import grid, packed_grids


@pytest.mark.parametrize(
    "module",
    [
        DetrLearnedPositionEmbedding(8),
        Florence2VisionLearnedAbsolutePositionEmbedding2D(
            Florence2Config(vision_config=Florence2VisionConfig(embed_dim=(8, 8, 8, 17)).to_dict())
        ),
    ],
    ids=["detr", "florence2"],
)
@torch.no_grad()
def test_columns_stand_before_rows_in_detr_and_florence2(module):
    rows, columns = module.row_embeddings.weight, module.column_embeddings.weight
    for each in (rows, columns):
        torch.nn.init.normal_(each)
    ours = AxialLearned.from_tables([rows, columns], "backward")
    assert ours.dim == rows.shape[1] + columns.shape[1]
    if isinstance(module, DetrLearnedPositionEmbedding):
        want = module((1, 3, 4, 5), torch.device("cpu"), torch.float32)
    else:
        want = module(torch.zeros(1, 3, 4, 5))
    assert torch.equal(ours.table(grid(4, 5)), want[0].flatten(1).T)


@torch.no_grad()
def test_gemma4_sums_them_and_gives_padding_zeros():
    module = Gemma4VisionPatchEmbedder(Gemma4VisionConfig(hidden_size=8, position_embedding_size=9))
    torch.nn.init.normal_(module.position_embedding_table)
    points, images = packed_grids([(2, 3), (4, 1)], length=12)
    padding = images < 0
    theirs = points.flip(-1).masked_fill(padding.unsqueeze(-1), -1)  # x first
    want = module._position_embeddings(theirs[None], padding[None])[0]
    ours = AxialLearned.from_tables(module.position_embedding_table.flip(0))
    assert torch.equal(ours.table(points), want)
