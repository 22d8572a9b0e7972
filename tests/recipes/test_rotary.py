"""Recipes of language models, against transformers with the published configurations."""

import pytest
import torch
from transformers import AutoConfig

from posenc import recipes
from posenc.positions import consecutive

LISTS = {
    "short_factor": [1.0 + 0.05 * i for i in range(48)],
    "long_factor": [1.0 + 1.3 * i for i in range(48)],
}


def llama3_scaling(factor: float) -> dict:
    return {"rope_type": "llama3", "rope_theta": 5e5, "factor": factor, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip


PHI3_128K = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
             "rope_parameters": {"rope_type": "longrope", **LISTS}}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "original_max_position_embeddings": 32768}
DEEPSEEK = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "beta_fast": 32.0,
            "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096}  # fmt: skip
LLAMA = {"hidden_size": 4096, "num_attention_heads": 32}

PUBLISHED = {
    "Llama 2 7B": (recipes.llama2(), "llama", LLAMA),
    "Llama 3 8B": (recipes.llama3(), "llama", LLAMA | {"rope_theta": 5e5}),
    "Llama 3.1 8B": (
        recipes.llama3(factor=8.0), "llama", LLAMA | {"rope_parameters": llama3_scaling(8.0)},
    ),
    "Llama 3.2 1B": (
        recipes.llama3(64, factor=32.0), "llama",
        {"hidden_size": 2048, "num_attention_heads": 32, "head_dim": 64,
         "rope_parameters": llama3_scaling(32.0)},
    ),
    "Mistral 7B v0.1": (recipes.mistral(base=1e4), "mistral", LLAMA | {"rope_theta": 1e4}),
    "Mistral 7B v0.3": (recipes.mistral(), "mistral", LLAMA | {"rope_theta": 1e6}),
    "Qwen2.5 7B": (
        recipes.qwen2(), "qwen2",
        {"hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1e6},
    ),
    "Qwen2.5 7B, YaRN": (
        recipes.qwen2(factor=4.0), "qwen2",
        {"hidden_size": 3584, "num_attention_heads": 28, "rope_parameters": YARN | {"factor": 4.0}},
    ),
    "Qwen3 8B": (recipes.qwen3(), "qwen3", {"rope_theta": 1e6}),
    "Qwen3 8B, YaRN": (
        recipes.qwen3(factor=4.0), "qwen3", {"rope_parameters": YARN | {"factor": 4.0}},
    ),
    "GPT-NeoX 20B": (recipes.gpt_neox(), "gpt_neox", {}),
    "Command R": (recipes.cohere(), "cohere", {"rope_theta": 8e6}),
    "Phi-3 mini 4k": (recipes.phi3(), "phi3", {}),
    "Phi-3 mini 128k": (
        recipes.phi3(short=LISTS["short_factor"], long=LISTS["long_factor"]), "phi3",
        PHI3_128K,
    ),
    "gpt-oss": (recipes.gpt_oss(), "gpt_oss", {}),
}  # fmt: skip


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", PUBLISHED)
def test_frequencies_and_applied_scores_are_those_of_the_model(name, published, only):
    recipe, model_type, fields = PUBLISHED[name]
    model, rotary = published(model_type, fields), only(recipe)
    model.agrees(rotary)
    q, k = random(1, 2, 20, rotary.head_dim), random(1, 2, 20, rotary.head_dim).flip(-1)
    turned_q, turned_k = rotary(q, k)
    want = model.scores("apply_rotary_pos_emb", q, k)
    torch.testing.assert_close(turned_q @ turned_k.mT, want, atol=3e-4, rtol=0)
    assert not list(recipe.tokens)
    assert not list(recipe.scores)


def test_gptj(only):
    from transformers.models.gptj.modeling_gptj import (
        apply_rotary_pos_emb,
        create_sinusoidal_positions,
    )

    config, rotary = AutoConfig.for_model("gptj"), only(recipes.gptj())
    assert rotary.head_dim == config.n_embd // config.n_head
    sin, cos = create_sinusoidal_positions(20, config.rotary_dim)[None].chunk(2, dim=-1)
    q = random(1, 20, 2, rotary.head_dim)
    want = apply_rotary_pos_emb(q[..., : config.rotary_dim], sin, cos)
    got = rotary.encode_queries(q.transpose(1, 2), rotary.table(consecutive(20))).transpose(1, 2)
    torch.testing.assert_close(got[..., : config.rotary_dim], want, atol=1e-5, rtol=0)
    assert torch.equal(got[..., config.rotary_dim :], q[..., config.rotary_dim :])


def test_deepseek_v3_scores_as_the_model_does(published, only):
    """Rotation of the last channels, softmax scale and temperature, up to the scores."""
    model = published("deepseek_v3", {"rope_parameters": dict(DEEPSEEK), "hidden_size": 64})
    recipe, config = recipes.deepseek_v3(heads=2), model.config
    rotary = only(recipe)
    model.agrees(rotary)
    still, width = config.qk_nope_head_dim, config.qk_nope_head_dim + config.qk_rope_head_dim
    q, k = random(1, 2, 20, width), random(1, 2, 20, width).flip(-1)
    scaling = model.code.DeepseekV3Attention(config, 0).scaling
    turned = model.scores("apply_rotary_pos_emb_interleave", q[..., still:], k[..., still:])
    want = scaling * (q[..., :still] @ k[..., :still].mT + turned)
    turned_q, turned_k = rotary(q, k)
    got = recipe.scores[0](turned_q @ turned_k.mT * width**-0.5)
    torch.testing.assert_close(got, want, atol=3e-5, rtol=0)
    assert scaling == pytest.approx(width**-0.5 * rotary.frequencies.softmax_factor, rel=1e-14)
    assert not list(recipes.deepseek_v3(heads=None).scores)
