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
    TimesformerModel,
)

from posenc import LearnedGrid
from posenc.interop.huggingface import positional_setup
from posenc.positions import grid

SMALL = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "patch_size": 4}


def held(values):
    (part,) = positional_setup(values)
    return part.layers[0].positional


def coordinates(model):
    """The displacements that each layer of Swin v2 reads."""
    return [
        module.relative_coords_table.reshape(-1, 2).double()
        for module in model.modules()
        if hasattr(module, "relative_coords_table")
    ]


@pytest.mark.parametrize("size", [[16, 64], [64, 16]])
@pytest.mark.parametrize(
    ("configuration", "model"), [(Swinv2Config, Swinv2Model), (Swin2SRConfig, Swin2SRModel)]
)
def test_windows_of_oblong_images_are_squares(configuration, model, size):
    config = configuration(image_size=size, window_size=8, **SMALL)
    layers = positional_setup(config).parts[0].layers
    theirs = coordinates(model(config))
    assert len(theirs) == len(layers)
    for layer, table in zip(layers, theirs, strict=True):
        (bias,) = layer.positional.scores
        torch.testing.assert_close(bias.coordinates(), table, rtol=0, atol=1e-6)


def test_swin2sr_was_trained_on_no_other_window_whatever_its_file_says():
    values = {"model_type": "swin2sr", **SMALL, "pretrained_window_sizes": [4, 4]}
    (bias,) = held(values).scores
    assert bias.pretrained_window == bias.window == (8, 8)


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


def test_patches_that_are_counted_are_those_of_a_square():
    values = {"model_type": "cosmos3_edge_vision", "num_patches": 64, "image_size": 4096}
    assert held(values).tokens[0].size == (8, 8)
    with pytest.raises(ValueError, match="num_patches"):
        positional_setup({**values, "num_patches": 60})


@pytest.mark.parametrize(
    "stray",
    [
        {"pretrain_image_size": 512},
        {"distilled": True},
        {"use_absolute_position_embeddings": False},
    ],
)
def test_fields_of_other_classes_are_not_read(stray):
    table = held({"model_type": "vit", **stray}).tokens[0]
    assert (table.size, table.prefix) == ((14, 14), 1)


def test_rotations_by_two_coordinates_know_no_rescaling():
    values = {"model_type": "qwen2_5_vl_vision", "rope_scaling": {"rope_type": "linear"}}
    with pytest.raises(ValueError, match="rope_type is 'linear'"):
        positional_setup(values)
    with pytest.raises(ValueError, match="base"):
        positional_setup({"model_type": "qwen2_5_vl_vision", "rope_theta": 0})


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


def test_bases_of_diffusers_are_those_that_the_class_reads():
    flux = {"_class_name": "FluxTransformer2DModel", "rope_theta": 500}
    assert held(flux).queries_keys[0].base == (10_000.0,) * 3


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"_class_name": "CogVideoXTransformer3DModel", "use_rotary_positional_embeddings": True,
          "use_learned_positional_embeddings": True}, "learned vectors of frame, row and column"),
        ({"_class_name": "WanTransformer3DModel", "pos_embed_seq_len": 514}, "begins and ends"),
        ({"_class_name": "QwenImageTransformer2DModel", "use_layer3d_rope": True}, "layers of an"),
    ],
)  # fmt: skip
def test_what_a_field_adds_is_told(values, said):
    (part,) = positional_setup(values)
    assert said in part.notes[-1]


def test_timm_builds_what_arguments_say_not_what_the_name_says():
    base = {"architecture": "vit_base_patch16_224"}
    assert held({**base, "model_args": {"num_classes": 7}}).tokens[0].size == (14, 14)
    with pytest.raises(ValueError, match="sizes"):
        positional_setup({**base, "model_args": {"img_size": 384}})
    large = {"input_size": [3, 384, 384], "fixed_input_size": True}
    with pytest.raises(ValueError, match="sizes"):
        positional_setup({**base, "pretrained_cfg": large})


def test_heads_of_timms_largest_are_80_wide():
    (part,) = positional_setup({"architecture": "vit_huge_patch14_224"})
    assert part.layers[0].softmax_scale == 80**-0.5


@pytest.mark.parametrize("kind", ["wav2vec2-conformer", "wav2vec2-bert"])
def test_frames_that_turn_before_they_are_projected_are_no_rotation_of_queries(kind):
    (part,) = positional_setup({"model_type": kind, "position_embeddings_type": "rotary"})
    assert part.layers[0].positional is None
    assert "before queries and keys are projected" in part.notes[0]


@pytest.mark.parametrize(
    ("config", "part", "said"),
    [
        ({"model_type": "timesformer"}, "vision", "a learned table of frames"),
        ({"model_type": "layoutlm"}, "text", "corners and sizes of boxes"),
        ({"model_type": "lilt"}, "text", "the scores of both are added"),
        ({"model_type": "luke"}, "text", "entities have a learned table"),
        ({"model_type": "markuplm"}, "text", "the path to the node"),
        ({"model_type": "visual_bert"}, "text", "regions of the image have a learned table"),
        ({"model_type": "prophetnet"}, "decoder", "buckets of distance in the scores"),
    ],
)
def test_tables_beside_that_of_positions_are_told(config, part, said):
    assert said in " ".join(positional_setup(config)[part].notes)


def test_frames_have_no_table_where_attention_is_of_patches_alone():
    for kind, held in (("divided_space_time", True), ("space_only", False)):
        sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        file = {"model_type": "timesformer", "attention_type": kind, **sizes}
        model = TimesformerModel(AutoConfig.for_model(**file))
        told = " ".join(positional_setup(file)["vision"].notes)
        assert hasattr(model.embeddings, "time_embeddings") == ("frames" in told) == held
