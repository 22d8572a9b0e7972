"""Recipes for tokens of images and sound, each against the module of its model as published."""

import pytest
import torch
from transformers import (
    ASTConfig,
    BeitConfig,
    CLIPVisionConfig,
    DabDetrConfig,
    Data2VecAudioConfig,
    DeformableDetrConfig,
    DeiTConfig,
    DetrConfig,
    Dinov2Config,
    HubertConfig,
    RTDetrConfig,
    SiglipVisionConfig,
    ViTConfig,
    ViTMAEConfig,
    VivitConfig,
    Wav2Vec2Config,
)
from transformers.models.audio_spectrogram_transformer import (
    modeling_audio_spectrogram_transformer as spectrograms,
)
from transformers.models.beit.modeling_beit import BeitRelativePositionBias
from transformers.models.clip.modeling_clip import CLIPVisionEmbeddings
from transformers.models.data2vec.modeling_data2vec_audio import (
    Data2VecAudioPositionalConvEmbedding,
)
from transformers.models.deit.modeling_deit import DeiTEmbeddings
from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding
from transformers.models.dinov2.modeling_dinov2 import Dinov2Embeddings
from transformers.models.hubert.modeling_hubert import HubertPositionalConvEmbedding
from transformers.models.siglip.modeling_siglip import SiglipVisionEmbeddings
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.vit_mae.modeling_vit_mae import ViTMAEEmbeddings
from transformers.models.vivit.modeling_vivit import VivitEmbeddings
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2PositionalConvEmbedding

from posenc import recipes
from posenc.positions import grid, masked_grid, prefixed

IMAGE, VIDEO = (1, 3, 224, 224), (1, 32, 3, 224, 224)
LEARNED = {  # the recipe, the model as published, and what goes in
    "ast": (recipes.ast, spectrograms.ASTEmbeddings, ASTConfig(), (1, 1024, 128)),
    "clip_vision": (recipes.clip_vision, CLIPVisionEmbeddings, CLIPVisionConfig(), IMAGE),
    "deit": (recipes.deit, DeiTEmbeddings, DeiTConfig(), IMAGE),
    "dinov2": (recipes.dinov2, Dinov2Embeddings, Dinov2Config(image_size=518), (1, 3, 518, 518)),
    "siglip": (recipes.siglip, SiglipVisionEmbeddings, SiglipVisionConfig(), IMAGE),
    "vit": (recipes.vit, ViTEmbeddings, ViTConfig(), IMAGE),
    "vivit": (recipes.vivit, VivitEmbeddings, VivitConfig(), VIDEO),
}


@pytest.mark.parametrize("name", LEARNED)
def test_learned_grids_add_what_the_model_adds(name):
    """An input goes through their embeddings with random positions, and with none."""
    recipe, module, config, shape = LEARNED[name]
    theirs, encoding, content = module(config).eval(), recipe().tokens[0], torch.randn(shape)
    (weight,) = (p for name, p in theirs.named_parameters() if "position" in name)
    with torch.no_grad():
        encoding.weight.copy_(weight.normal_().view(encoding.weight.shape))
        expected = theirs(content)
        weight.zero_()
        got = encoding(theirs(content), prefixed(grid(*encoding.size), encoding.prefix))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_mae_has_the_table_of_the_model():
    theirs = ViTMAEEmbeddings(ViTMAEConfig())
    theirs.initialize_weights()
    got = recipes.mae().tokens[0].table(prefixed(grid(14, 14)))
    torch.testing.assert_close(got, theirs.position_embeddings[0], rtol=0, atol=1e-7)


def test_detr_has_the_sines_of_the_model():
    mask = torch.zeros(2, 25, 34, dtype=torch.bool)
    mask[0], mask[1, :20, :11] = True, True
    config = DetrConfig()
    theirs = DetrSinePositionEmbedding(config.d_model // 2, normalize=True)
    expected = theirs((2, 1, 25, 34), "cpu", torch.float64, mask).flatten(2).mT
    got = recipes.detr(config.d_model).tokens[0].table(masked_grid(mask), dtype=torch.float64)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-13)


def test_sizes_are_those_of_published_configurations():
    dab, deformable, rt = DabDetrConfig(), DeformableDetrConfig(), RTDetrConfig()
    assert recipes.dab_detr(dab.hidden_size).tokens[0].base == dab.temperature_height
    levels = recipes.deformable_detr(deformable.d_model).tokens[0]
    assert (levels.levels, levels.dim) == (deformable.num_feature_levels, deformable.d_model)
    sines = recipes.rt_detr(rt.encoder_hidden_dim).tokens[0]
    assert sines.base == rt.positional_encoding_temperature


def test_beit_has_the_biases_of_the_model():
    theirs = BeitRelativePositionBias(BeitConfig())
    torch.nn.init.normal_(theirs.relative_position_bias_table)
    encoding, points = recipes.beit().scores[0], prefixed(grid(14, 14))
    encoding.load_state_dict({"weight": theirs.relative_position_bias_table})
    assert torch.equal(encoding.table(points, points), theirs((14, 14))[0])


@pytest.mark.parametrize(
    ("recipe", "module", "config"),
    [
        (recipes.wav2vec2, Wav2Vec2PositionalConvEmbedding, Wav2Vec2Config()),
        (recipes.wav2vec2, HubertPositionalConvEmbedding, HubertConfig()),
        (recipes.data2vec_audio, Data2VecAudioPositionalConvEmbedding, Data2VecAudioConfig()),
    ],
)
def test_convolutions_are_those_of_the_models(recipe, module, config):
    theirs, encoding = module(config).eval(), recipe(config.hidden_size).tokens[0]
    encoding.load(theirs.state_dict())
    x = torch.randn(1, 30, config.hidden_size)
    with torch.no_grad():
        torch.testing.assert_close(encoding(x), x + theirs(x), rtol=1e-5, atol=2e-5)
