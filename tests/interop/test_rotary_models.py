"""What no configuration says, model by model: pairing, layers without rotation, and defaults."""

import pytest
import torch
from transformers import AutoConfig

from posenc import Rotary
from posenc.interop.configurations import read
from posenc.interop.huggingface import rotary_from_config
from posenc.interop.rotary_config import layers_by_type, read_layers_of

HALF = [
    "afmoe", "chameleon", "dbrx", "exaone4", "falcon", "falcon_h1", "gemma", "gemma2", "gpt_neox",
    "gpt_oss", "granite", "hunyuan_v1_dense", "hy_v3", "llama", "minicpm3", "minimax_m2", "mistral",
    "mixtral", "nanochat", "nemotron", "olmo2", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_next",
    "seed_oss", "smollm3", "starcoder2",
]  # fmt: skip
INTERLEAVED = [
    "axk1", "bailing_hybrid", "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "deepseek_v32",
    "ernie4_5", "ernie4_5_moe", "glm", "glm4", "glm4_moe_lite", "glm_moe_dsa", "helium",
    "llama4_text", "longcat_flash", "mistral4", "moonshine_streaming", "youtu",
]  # fmt: skip
APPLIED = ["apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb", "apply_rotary_emb"]


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-1, -2)


def theirs(oracle, config, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scores of queries and keys that the model's own function has rotated.

    Some functions return channels in another order, of queries and keys alike; no score moves.
    """
    code = oracle.code_of(config)
    apply = next(getattr(code, name) for name in APPLIED if hasattr(code, name))
    turned = oracle.module_of(config)(q, torch.arange(q.shape[-2])[None])
    if not isinstance(turned, torch.Tensor):
        return scores(*apply(q, k, *turned))
    if config.model_type == "deepseek_v2":
        return scores(*apply(q, k, turned))
    q, k = apply(q.transpose(1, 2), k.transpose(1, 2), turned)
    return scores(q.transpose(1, 2), k.transpose(1, 2))


@pytest.mark.parametrize("model", [*HALF, *INTERLEAVED])
def test_pairing_is_that_of_the_models_own_function(oracle, model):
    config = AutoConfig.for_model(model)
    encoding = rotary_from_config(config)
    assert encoding.pairing == ("interleaved" if model in INTERLEAVED else "half")
    assert all(layer.pairing_is_known for layer in layers_by_type(read(config)).values())
    # DeepSeek's functions are given the part of a head that is rotated, the others the whole.
    latent = encoding.rotated == "suffix"
    width = encoding.rotated_dim if latent else encoding.head_dim
    ours = Rotary(encoding.frequencies, head_dim=width, pairing=encoding.pairing)
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 7, width, generator=generator) for _ in range(2))
    torch.testing.assert_close(scores(*ours(q, k)), theirs(oracle, config, q, k), rtol=0, atol=3e-4)


def test_pairing_of_gptj_and_codegen_and_their_narrow_rotation(oracle):
    for model in ("gptj", "codegen"):
        config = AutoConfig.for_model(model, n_embd=64, n_head=4, n_layer=2, rotary_dim=8)
        encoding = rotary_from_config(config)
        code = oracle.code_of(config)
        sin, cos = code.create_sinusoidal_positions(6, 8)[None].chunk(2, dim=-1)
        q = torch.randn(1, 6, 4, 16, generator=torch.Generator().manual_seed(1))
        turned = code.apply_rotary_pos_emb(q[..., :8], sin, cos)
        ours = encoding(q.transpose(1, 2), q.transpose(1, 2))[0].transpose(1, 2)
        torch.testing.assert_close(ours[..., :8], turned, rtol=0, atol=1e-6)
        assert torch.equal(ours[..., 8:], q[..., 8:])


def test_alpha_and_lists_under_the_name_of_another_type_are_read_for_models_that_read_them(oracle):
    dynamic = {"rope_type": "dynamic", "factor": 2.0, "alpha": 1000.0, "rope_theta": 1e4}
    config = AutoConfig.for_model("hunyuan_v1_dense", head_dim=64, rope_parameters=dynamic)
    lengths = rotary_from_config(config).frequencies.wavelengths()
    ours = torch.tensor([2 * torch.pi / float(each) for each in lengths])
    torch.testing.assert_close(ours, oracle.module_of(config).inv_freq, rtol=1e-5, atol=0)
    with pytest.raises(ValueError, match="alpha"):
        rotary_from_config({"model_type": "llama", "rope_scaling": dynamic})
    lists = {"type": "yarn", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    (layer, *_) = read_layers_of(read({"model_type": "phi3", "rope_scaling": lists}))
    assert layer.rope.kind == "longrope"
