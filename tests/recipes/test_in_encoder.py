"""Every recipe runs in an encoder as it stands, with the heads of its model."""

import inspect

import pytest
import torch
from tests.goldens.recipes import BEHIND_TOKENS, GRIDS
from tests.goldens.recipes import places as placed

from posenc import Positional, recipes
from posenc.transformer import Encoder

# What a recipe's model has beside its encodings: heads, kv_heads, head_dim, and the rest.
MODELS = {
    "ast": {"dim": 768, "heads": 12},
    "beit": {"heads": 12, "head_dim": 64},
    "bert": {"dim": 768, "heads": 12, "norm": "post", "embedding_norm": True},
    "bloom": {"heads": 32, "head_dim": 128, "is_causal": True},
    "clip_vision": {"dim": 768, "heads": 12},
    "cogvideox": {"heads": 48, "head_dim": 64},
    "cogvideox_2b": {"dim": 1920, "heads": 30},
    "cohere": {"heads": 64, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "conformer": {"heads": 16, "head_dim": 64},
    "cpvt": {"dim": 192, "heads": 3},
    "croco": {"heads": 16, "head_dim": 64},
    "dab_detr": {"dim": 256, "heads": 8},
    "data2vec_audio": {"dim": 768, "heads": 12},
    "deberta_v3": {"heads": 12, "head_dim": 64},
    "deepseek_v3": {"heads": 128, "head_dim": 192, "is_causal": True},
    "deformable_detr": {"dim": 256, "heads": 8},
    "deit": {"dim": 768, "heads": 12},
    "detr": {"dim": 256, "heads": 8},
    "dinov2": {"dim": 768, "heads": 12},
    "dinov3": {"heads": 6, "head_dim": 64},
    "eva02": {"heads": 12, "head_dim": 64},
    "flux": {"heads": 24, "head_dim": 128},
    "flux2": {"heads": 48, "head_dim": 128},
    "gemma3": {"heads": 8, "kv_heads": 4, "head_dim": 256, "scale": 256**-0.5, "is_causal": True},
    "gemma4_vision": {"heads": 12, "head_dim": 64},
    "gpt_neox": {"heads": 64, "head_dim": 96, "is_causal": True},
    "gpt_oss": {"heads": 64, "kv_heads": 8, "head_dim": 64, "is_causal": True},
    "gptj": {"heads": 16, "head_dim": 256, "is_causal": True},
    "hunyuan_video": {"heads": 24, "head_dim": 128},
    "llama2": {"heads": 32, "head_dim": 128, "is_causal": True},
    "llama3": {"heads": 32, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "llama4": {"heads": 40, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "llama4_vision": {"heads": 16, "head_dim": 88},
    "ltx2": {"heads": 32, "head_dim": 128},
    "ltx2_audio": {"heads": 32, "head_dim": 64},
    "ltx_video": {"heads": 32, "head_dim": 64},
    "m2m100": {"dim": 1024, "heads": 16},
    "mae": {"dim": 768, "heads": 12},
    "minimax_h3": {"heads": 56, "head_dim": 128},
    "mistral": {"heads": 32, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "modernbert": {"heads": 12, "head_dim": 64},
    "mpt": {"heads": 32, "head_dim": 128, "is_causal": True},
    "musicgen": {"dim": 1024, "heads": 16, "is_causal": True},
    "opt": {"dim": 768, "heads": 12, "is_causal": True},
    "phi3": {"heads": 32, "head_dim": 96, "is_causal": True},
    "pixart": {"dim": 1152, "heads": 16},
    "pixtral": {"heads": 16, "head_dim": 64},
    "qwen2": {"heads": 28, "kv_heads": 4, "head_dim": 128, "is_causal": True},
    "qwen2_vl": {"heads": 28, "kv_heads": 4, "head_dim": 128, "is_causal": True},
    "qwen2_vl_vision": {"heads": 16, "head_dim": 80},
    "qwen3": {"heads": 32, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "qwen3_vl": {"heads": 32, "kv_heads": 8, "head_dim": 128, "is_causal": True},
    "qwen_image": {"heads": 24, "head_dim": 128},
    "rope_vit": {"heads": 6, "head_dim": 64},
    "rope_vit_mixed": {"heads": 6, "head_dim": 64},
    "rt_detr": {"dim": 256, "heads": 8},
    "sam": {"heads": 12, "head_dim": 64},
    "siglip": {"dim": 768, "heads": 12},
    "smollm3": {"heads": 16, "kv_heads": 4, "head_dim": 128, "is_causal": True},
    "stable_diffusion_3": {"dim": 1536, "heads": 24},
    "swin": {"heads": 3, "head_dim": 32},
    "swin_v2": {"heads": 3, "head_dim": 32},
    "t5": {"heads": 12, "head_dim": 64, "scale": 1.0},
    "transformer_xl": {"heads": 10, "head_dim": 41, "is_causal": True},
    "vaswani2017": {"dim": 512, "heads": 8},
    "vit": {"dim": 768, "heads": 12},
    "vivit": {"dim": 768, "heads": 12},
    "vjepa2": {"heads": 16, "head_dim": 64},
    "wan": {"heads": 40, "head_dim": 128},
    "wav2vec2": {"dim": 768, "heads": 12},
    "whisper_decoder": {"dim": 512, "heads": 8, "is_causal": True},
    "whisper_encoder": {"dim": 512, "heads": 8},
}
WINDOWS = {
    "gemma3": lambda layer: None if (layer + 1) % 6 == 0 else 1024,
    "gpt_oss": lambda layer: 128 if layer % 2 == 0 else None,
    "modernbert": lambda layer: None if layer % 3 == 0 else 64,
}


def built(name: str, depth: int | None) -> tuple[Encoder, int]:
    """The encoder of a recipe, of ``depth`` layers or of all that its model has."""
    recipe, model = getattr(recipes, name), dict(MODELS[name])
    by_layer = "depth" in inspect.signature(recipe).parameters
    made = recipe(depth=depth) if by_layer and depth else recipe()
    depth = depth or (len(made) if by_layer else 12)
    if not by_layer:
        assert isinstance(made, Positional)
    window = [WINDOWS[name](layer) for layer in range(depth)] if name in WINDOWS else None
    dim = model.pop("dim", 64)
    heads = model.pop("heads")
    return Encoder(dim, heads, depth, positional=made, inner=64, window=window, **model), dim


def places(name: str) -> torch.Tensor | None:
    """Points where a recipe has such; all others stand at 0, 1, 2, …."""
    points = name in GRIDS or name in BEHIND_TOKENS or name.endswith(("detr", "_vl"))
    return placed(name)[None] if points else None


def test_every_recipe_has_its_model():
    assert set(MODELS) == set(recipes.__all__)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize("name", MODELS)
def test_two_layers_run_and_learn(name):
    encoder, dim = built(name, 2)
    where = places(name)
    x = torch.randn(1, 5 if where is None else where.shape[1], dim, requires_grad=True)
    out = encoder(x, where)
    assert out.shape == x.shape
    assert out.isfinite().all()
    out.square().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


EVERY = pytest.mark.slow("all recipes at their full depth")
DEEP = [name if at % 12 == 0 else pytest.param(name, marks=EVERY) for at, name in enumerate(MODELS)]


@pytest.mark.parametrize("name", DEEP)
def test_its_full_depth_runs_on_meta(name):
    with torch.device("meta"):
        encoder, dim = built(name, None)
        where = places(name)
        x = torch.empty(1, 5 if where is None else where.shape[1], dim)
        assert encoder(x, where).shape == x.shape
