"""Files of image and diffusion models that are unusual: oblong images, fields of other classes."""

from fractions import Fraction

import pytest
import torch
from diffusers.models.transformers.transformer_ltx import LTXVideoRotaryPosEmbed
from transformers import (
    Aimv2VisionModel,
    AutoConfig,
    Swin2SRConfig,
    Swin2SRModel,
    Swinv2Config,
    Swinv2Model,
)

from posenc import LearnedGrid
from posenc.interop.huggingface import positional_setup
from posenc.positions import grid

SMALL = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "patch_size": 4}


def held(values):
    (part,) = positional_setup(values)
    return part.layers[0].positional


@pytest.mark.parametrize("size", [[16, 64], [64, 16]])
@pytest.mark.parametrize(
    ("configuration", "model"), [(Swinv2Config, Swinv2Model), (Swin2SRConfig, Swin2SRModel)]
)
def test_windows_of_oblong_images_are_squares(configuration, model, size):
    config = configuration(image_size=size, window_size=8, **SMALL)
    layers = positional_setup(config).parts[0].layers
    theirs = [
        module.relative_coords_table.reshape(-1, 2).double()
        for module in model(config).modules()
        if hasattr(module, "relative_coords_table")
    ]
    assert len(theirs) == len(layers)
    for layer, table in zip(layers, theirs, strict=True):
        (bias,) = layer.positional.scores
        torch.testing.assert_close(bias.coordinates(), table, rtol=0, atol=1e-6)


def test_aimv2_of_native_resolution_has_sines():
    file = {"model_type": "aimv2_vision_model", "hidden_size": 32, "image_size": 12,
            "patch_size": 4, "num_hidden_layers": 1}  # fmt: skip
    model = Aimv2VisionModel(AutoConfig.for_model(**file, is_native=True, num_attention_heads=4))
    embeddings, image = model.embeddings, torch.zeros(1, 3, 12, 20)
    plain = embeddings.rms_norm(embeddings.patch_embed(image).flatten(2).transpose(1, 2))
    added = (embeddings(image) - plain)[0]
    (sines,) = held({**file, "is_native": True}).tokens
    torch.testing.assert_close(sines.table(grid(3, 5)), added, rtol=0, atol=1e-5)
    (learned,) = held(file).tokens
    assert isinstance(learned, LearnedGrid)


def test_patches_of_ltx_video_are_as_large_as_its_file_says():
    values = {"_class_name": "LTXVideoTransformer3DModel", "attention_head_dim": 12,
              "num_attention_heads": 2, "patch_size": 2, "patch_size_t": 4}  # fmt: skip
    (rotary,) = held(values).queries_keys
    assert rotary.sizes == (Fraction(125, 8), 32, 32)
    theirs = LTXVideoRotaryPosEmbed(24, patch_size=2, patch_size_t=4)
    cos, sin = theirs(torch.zeros(1, 1), 3, 2, 5, rope_interpolation_scale=(8 / 25, 32, 32))
    ours = rotary.table(grid(3, 2, 5)).flatten(-2)
    torch.testing.assert_close(ours[:, 0], cos[0, :, ::2], rtol=0, atol=5e-3)
    torch.testing.assert_close(ours[:, 1], sin[0, :, ::2], rtol=0, atol=5e-3)
