"""Recipes of models that see, against transformers and the published formulas."""

import pytest
import torch
from transformers import (
    AutoConfig,
    Gemma4VisionConfig,
    Llama4VisionConfig,
    PixtralVisionConfig,
    VJEPA2Config,
)
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.dinov3_vit.modeling_dinov3_vit import apply_rotary_pos_emb as apply_dinov3
from transformers.models.pixtral.modeling_pixtral import PixtralVisionRotaryEmbedding
from transformers.models.pixtral.modeling_pixtral import apply_rotary_pos_emb as apply_pixtral
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig

from posenc import recipes
from posenc.positions import grid


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


QWENS = {
    "Qwen2-VL 7B": (recipes.qwen2_vl(), "qwen2_vl_text", 1e6, [16, 24, 24]),
    "Qwen3-VL 4B": (recipes.qwen3_vl(), "qwen3_vl_text", 5e6, [24, 20, 20]),
}


@pytest.mark.parametrize("name", QWENS)
def test_the_qwens_with_three_different_coordinates(name, published):
    recipe, model_type, base, sections = QWENS[name]
    rope = {"rope_type": "default", "rope_theta": base, "mrope_section": sections}
    sizes = {"hidden_size": 3584, "num_attention_heads": 28}
    model = published(model_type, sizes | {"rope_parameters": rope})
    (encoding,) = recipe.queries_keys
    model.agrees(encoding.rotary)
    positions = torch.randint(40, (1, 20, 3), generator=torch.Generator().manual_seed(1))
    q, k = random(1, 2, 20, 128), random(1, 2, 20, 128).flip(-1)
    cos, sin = model.rotary(q, positions.permute(2, 0, 1))
    wanted = model.code.apply_rotary_pos_emb(q, k, cos, sin)
    for got, want in zip(encoding(q, k, positions), wanted, strict=True):
        torch.testing.assert_close(got, want, atol=3e-5, rtol=0)


def test_pixtral():
    config, positions = PixtralVisionConfig(), grid(5, 7)
    (encoding,) = recipes.pixtral().queries_keys
    assert encoding.head_dim == config.head_dim
    cos, sin = PixtralVisionRotaryEmbedding(config)(random(1), positions[None].mT)
    q, k = random(1, 2, 35, 64), random(1, 2, 35, 64).flip(-1)
    wanted = apply_pixtral(q, k, cos.view(1, 35, 64), sin.view(1, 35, 64))
    for got, want in zip(encoding(q, k, positions), wanted, strict=True):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=0)


def test_dinov3():
    config = AutoConfig.for_model("dinov3_vit")
    (encoding,) = recipes.dinov3(grid=(5, 7)).queries_keys
    assert encoding.head_dim == config.hidden_size // config.num_attention_heads
    size = config.patch_size
    cos, sin = DINOv3ViTRopePositionEmbedding(config).eval()(random(1, 3, 5 * size, 7 * size))
    q, k = random(1, 2, 35, 64), random(1, 2, 35, 64).flip(-1)
    for got, want in zip(encoding(q, k, grid(5, 7)), apply_dinov3(q, k, cos, sin), strict=True):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("recipe", "config"),
    [
        (recipes.llama4_vision(), Llama4VisionConfig(hidden_size=1408)),  # as published
        (recipes.gemma4_vision(), Gemma4VisionConfig()),
        (recipes.qwen2_vl_vision(), Qwen2VLVisionConfig()),
        (recipes.vjepa2(), VJEPA2Config()),
    ],
    ids=["llama4", "gemma4", "qwen2_vl", "vjepa2"],
)
def test_patches_have_the_widths_and_bases_of_transformers(recipe, config):
    (encoding,) = recipe.queries_keys
    width = getattr(config, "embed_dim", None) or config.hidden_size
    heads = getattr(config, "num_attention_heads", None) or config.num_heads
    assert encoding.head_dim == (getattr(config, "head_dim", None) or width // heads)
    parameters = getattr(config, "rope_parameters", None)  # V-JEPA 2 has its base in the code
    if parameters:
        assert set(encoding.base) == {parameters["rope_theta"]}


def test_eva02_squeezes_a_larger_grid_into_the_trained_one():
    (small,), (large,) = recipes.eva02().queries_keys, recipes.eva02(grid=(32, 48)).queries_keys
    corners = torch.tensor([[2, 3], [30, 45]])
    assert torch.equal(large.table(corners), small.table(torch.tensor([[1, 1], [15, 15]])))
