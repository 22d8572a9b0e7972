"""Converted weights, proven by equal logits of small random models from transformers."""

import copy

import pytest
import torch
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.models.falcon import modeling_falcon
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama
from transformers.models.phi3 import modeling_phi3
from transformers.models.qwen3 import modeling_qwen3

from posenc.kernels.rotary.reference import rotate
from posenc.numerics.pairing import convert_channels, convert_fused, convert_projection

IDS = torch.randint(50, (2, 11), generator=torch.Generator().manual_seed(0))
SIZES = {"vocab_size": 50, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}


def interleaved(q, k, cos, sin, unsqueeze_dim=1, **_):
    """Instead of transformers' own function: the same angles, for interleaved pairs."""
    half = cos.shape[-1] // 2
    cos, sin = (part[..., :half].unsqueeze(unsqueeze_dim) for part in (cos, sin))
    return tuple(rotate(x, cos, sin, pairing="interleaved") for x in (q, k))


def halves(x, sin, cos):
    """Instead of GPT-J's: the same angles, for pairs i and i + r/2."""
    return rotate(x, cos[:, :, None], sin[:, :, None], pairing="half")


def randomized(model):
    """Every parameter random, so that biases and scales of norms cannot hide."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3 + 0.1)
    return model.eval()


@torch.no_grad()
def logits(model) -> torch.Tensor:
    return model(IDS).logits


@torch.no_grad()
def proven(monkeypatch, model, module, name, replacement, convert) -> None:
    """Converted weights need the other rotation, and with it give the same logits."""
    before, converted = logits(model), copy.deepcopy(model)
    for layer in converted.modules():
        convert(layer)
    assert not torch.allclose(logits(converted), before, atol=1e-3)
    monkeypatch.setattr(module, name, replacement)
    assert not torch.allclose(logits(model), before, atol=1e-3)
    torch.testing.assert_close(logits(converted), before, atol=2e-5, rtol=1e-4)


def into(parameter, converted) -> None:
    parameter.data.copy_(converted)


def test_llama_with_grouped_keys_and_biases(monkeypatch):
    config = LlamaConfig(**SIZES, num_key_value_heads=2, intermediate_size=16, attention_bias=True)

    def convert(layer):
        if isinstance(layer, modeling_llama.LlamaAttention):
            for projection in (layer.q_proj, layer.k_proj):
                for part in (projection.weight, projection.bias):
                    into(part, convert_projection(part, "interleaved", head_dim=8))

    model = randomized(LlamaForCausalLM(config))
    proven(monkeypatch, model, modeling_llama, "apply_rotary_pos_emb", interleaved, convert)


def test_qwen3_with_norms_of_queries_and_keys(monkeypatch):
    config = Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=8, intermediate_size=16)

    def convert(layer):
        if isinstance(layer, modeling_qwen3.Qwen3Attention):
            for projection in (layer.q_proj, layer.k_proj):
                weight = convert_projection(projection.weight, "interleaved", head_dim=8)
                into(projection.weight, weight)
            for norm in (layer.q_norm, layer.k_norm):
                into(norm.weight, convert_channels(norm.weight, "interleaved"))

    model = randomized(Qwen3ForCausalLM(config))
    proven(monkeypatch, model, modeling_qwen3, "apply_rotary_pos_emb", interleaved, convert)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_gpt_neox_fused_and_partly_rotated(monkeypatch, share):
    sizes = SIZES | {"hidden_size": 64}
    config = GPTNeoXConfig(**sizes, intermediate_size=16, rotary_pct=share)
    fields = {"heads": 4, "head_dim": 16, "order": "grouped", "rotated_dim": int(16 * share)}

    def convert(layer):
        if isinstance(layer, modeling_gpt_neox.GPTNeoXAttention):
            for part in (layer.query_key_value.weight, layer.query_key_value.bias):
                into(part, convert_fused(part, "interleaved", **fields))

    model = randomized(GPTNeoXForCausalLM(config))
    proven(monkeypatch, model, modeling_gpt_neox, "apply_rotary_pos_emb", interleaved, convert)


def test_gptj_partly_rotated_to_half(monkeypatch):
    config = GPTJConfig(
        vocab_size=50, n_embd=64, n_head=4, n_layer=2, n_inner=16, n_positions=32, rotary_dim=8
    )

    def convert(layer):
        if isinstance(layer, modeling_gptj.GPTJAttention):
            for projection in (layer.q_proj, layer.k_proj):
                weight = projection.weight
                into(weight, convert_projection(weight, "half", head_dim=16, rotated_dim=8))

    model = randomized(GPTJForCausalLM(config))
    proven(monkeypatch, model, modeling_gptj, "apply_rotary_pos_emb", halves, convert)


def test_phi3_concatenated(monkeypatch):
    config = Phi3Config(
        **SIZES, num_key_value_heads=2, intermediate_size=16, pad_token_id=0, eos_token_id=1
    )

    def convert(layer):
        if isinstance(layer, modeling_phi3.Phi3Attention):
            weight = layer.qkv_proj.weight
            fields = {"heads": 4, "kv_heads": 2, "head_dim": 8, "order": "concatenated"}
            into(weight, convert_fused(weight, "interleaved", **fields))

    model = randomized(Phi3ForCausalLM(config))
    proven(monkeypatch, model, modeling_phi3, "apply_rotary_pos_emb", interleaved, convert)


def test_falcon_grouped(monkeypatch):
    config = FalconConfig(
        **SIZES, num_kv_heads=2, new_decoder_architecture=True, alibi=False, bias=True
    )

    def convert(layer):
        if isinstance(layer, modeling_falcon.FalconAttention):
            fields = {"heads": 4, "kv_heads": 2, "head_dim": 8, "order": "grouped"}
            for part in (layer.query_key_value.weight, layer.query_key_value.bias):
                into(part, convert_fused(part, "interleaved", **fields))

    model = randomized(FalconForCausalLM(config))
    proven(monkeypatch, model, modeling_falcon, "apply_rotary_pos_emb", interleaved, convert)
