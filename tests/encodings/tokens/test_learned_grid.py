"""LearnedGrid: rows of a grid and their resampling, against the models of transformers."""

import pytest
import torch
from transformers import (
    BeitConfig,
    CLIPVisionConfig,
    DeiTConfig,
    Dinov2Config,
    Siglip2VisionConfig,
    SiglipVisionConfig,
    ViTConfig,
)
from transformers.models.beit.modeling_beit import BeitEmbeddings
from transformers.models.clip.modeling_clip import CLIPVisionEmbeddings
from transformers.models.deit.modeling_deit import DeiTEmbeddings
from transformers.models.dinov2.modeling_dinov2 import Dinov2Embeddings
from transformers.models.siglip.modeling_siglip import SiglipVisionEmbeddings
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings
from transformers.models.vit.modeling_vit import ViTEmbeddings

from posenc import LearnedGrid
from posenc.positions import grid, packed_grids, prefixed

FIELDS = {
    "hidden_size": 8,
    "num_attention_heads": 2,
    "image_size": 20,
    "patch_size": 4,
}  # a grid of 5 × 5
MODELS = {
    "vit": (lambda: ViTEmbeddings(ViTConfig(**FIELDS)), 1),
    "deit": (lambda: DeiTEmbeddings(DeiTConfig(**FIELDS)), 2),
    "dinov2": (lambda: Dinov2Embeddings(Dinov2Config(**FIELDS)), 1),
    "beit": (
        lambda: BeitEmbeddings(BeitConfig(**FIELDS, use_absolute_position_embeddings=True)), 1,
    ),
    "clip": (lambda: CLIPVisionEmbeddings(CLIPVisionConfig(**FIELDS)), 1),
    "siglip": (lambda: SiglipVisionEmbeddings(SiglipVisionConfig(**FIELDS)), 0),
}  # fmt: skip


def randomized(module):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(5, 5), (7, 4), (3, 11), (1, 1)])
def test_resampling_is_that_of_the_model(name, size):
    make, prefix = MODELS[name]
    theirs = randomized(make())
    ours = LearnedGrid.from_state_dict(theirs.state_dict())
    assert (ours.size, ours.prefix) == ((5, 5), prefix)
    tokens = torch.zeros(1, size[0] * size[1] + prefix, 8)
    height, width = size[0] * 4, size[1] * 4
    expected = theirs.interpolate_pos_encoding(tokens, height, width)
    torch.testing.assert_close(ours.resampled(size), expected.view(-1, 8), rtol=1e-5, atol=2e-6)
    resized = ours.resized(size)
    assert torch.equal(resized.table(prefixed(grid(*size), prefix)), ours.resampled(size))


def test_siglip2_resamples_each_image_of_a_batch():
    config = Siglip2VisionConfig(
        hidden_size=8, num_attention_heads=2, num_patches=25, patch_size=2, num_channels=3
    )
    theirs = randomized(Siglip2VisionEmbeddings(config))
    ours = LearnedGrid.from_state_dict(theirs.state_dict())
    sizes = [(4, 6), (5, 5), (2, 3)]
    weight = theirs.position_embedding.weight.view(5, 5, 8)
    expected = theirs.resize_positional_embeddings(weight, torch.tensor(sizes), 25)
    for size, want in zip(sizes, expected, strict=True):
        got = ours.resampled(size, interpolation="linear", antialias=True)
        torch.testing.assert_close(got, want[: len(got)], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("prefix", [0, 1])
def test_padding_behind_packed_images_gets_zeros_and_trains_no_row(prefix):
    """Also not that of the class token, which stands nowhere as padding does."""
    encoding = LearnedGrid(4, (3, 3), prefix=prefix, std=1.0)
    points, images = packed_grids([(2, 2), (1, 3)], prefix=prefix, length=12)
    table = encoding.table(points)
    assert not table[images < 0].any()
    short, _ = packed_grids([(2, 2), (1, 3)], prefix=prefix)
    assert torch.equal(table[images >= 0], encoding.table(short))
    table[images < 0].sum().backward()
    assert not encoding.weight.grad.any()


def test_a_weight_with_a_grid_of_its_own():
    sam = torch.randn(1, 4, 6, 8)
    encoding = LearnedGrid.from_state_dict({"vision_encoder.pos_embed": sam})
    assert (encoding.size, encoding.prefix) == ((4, 6), 0)
    assert torch.equal(encoding.table(grid(4, 6)), sam.view(24, 8))
    told = LearnedGrid.from_weight(torch.zeros(25, 8), size=(2, 3, 4))
    assert (told.size, told.prefix) == ((2, 3, 4), 1)
    assert LearnedGrid.from_weight(torch.zeros(20, 8), prefix=4).size == (4, 4)
