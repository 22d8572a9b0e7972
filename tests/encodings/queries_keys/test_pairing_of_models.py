"""Converted weights, proven by equal logits of small random models from transformers."""

import copy
from functools import partial

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
GROUPED = SIZES | {"num_key_value_heads": 2, "intermediate_size": 16}


def interleaved(q, k, cos, sin, unsqueeze_dim=1, **_):
    """Instead of transformers' own function: the same angles, for interleaved pairs."""
    half = cos.shape[-1] // 2
    cos, sin = (part[..., :half].unsqueeze(unsqueeze_dim) for part in (cos, sin))
    return tuple(rotate(x, cos, sin, pairing="interleaved") for x in (q, k))


def halves(x, sin, cos):
    """Instead of GPT-J's: the same angles, for pairs i and i + r/2."""
    return rotate(x, cos[:, :, None], sin[:, :, None], pairing="half")


def neox(share):
    config = GPTNeoXConfig(**SIZES | {"hidden_size": 64}, intermediate_size=16, rotary_pct=share)
    fields = {"heads": 4, "head_dim": 16, "order": "grouped", "rotated_dim": int(16 * share)}
    convert = partial(convert_fused, to="interleaved", **fields)
    return modeling_gpt_neox, GPTNeoXForCausalLM(config), {"query_key_value": convert}


PROJECTED = partial(convert_projection, to="interleaved", head_dim=8)
FUSED = partial(convert_fused, to="interleaved", heads=4, kv_heads=2, head_dim=8)
NORMS = dict.fromkeys(("q_norm", "k_norm"), partial(convert_channels, to="interleaved"))
PROJECTIONS = dict.fromkeys(("q_proj", "k_proj"), PROJECTED)
OF_GPTJ = partial(convert_projection, to="half", head_dim=16, rotated_dim=8)
# Its module, the model, and what converts the parameters of each part of a layer.
MODELS = {
    "llama": lambda: (
        modeling_llama, LlamaForCausalLM(LlamaConfig(**GROUPED, attention_bias=True)), PROJECTIONS,
    ),
    "qwen3": lambda: (
        modeling_qwen3, Qwen3ForCausalLM(Qwen3Config(**GROUPED, head_dim=8)), PROJECTIONS | NORMS,
    ),
    **{f"neox {share}": partial(neox, share) for share in (0.25, 0.5, 1.0)},
    "gptj": lambda: (
        modeling_gptj,
        GPTJForCausalLM(GPTJConfig(vocab_size=50, n_embd=64, n_head=4, n_layer=2, n_inner=16,
                                   n_positions=32, rotary_dim=8)),
        dict.fromkeys(("q_proj", "k_proj"), OF_GPTJ),
    ),
    "phi3": lambda: (
        modeling_phi3,
        Phi3ForCausalLM(Phi3Config(**GROUPED, pad_token_id=0, eos_token_id=1)),
        {"qkv_proj": partial(FUSED, order="concatenated")},
    ),
    "falcon": lambda: (
        modeling_falcon,
        FalconForCausalLM(FalconConfig(**SIZES, num_kv_heads=2, new_decoder_architecture=True,
                                       alibi=False, bias=True)),
        {"query_key_value": partial(FUSED, order="grouped")},
    ),
}  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_converted_weights_need_the_other_rotation_and_give_the_same_logits(monkeypatch, name):
    module, model, converters = MODELS[name]()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.eval().parameters():  # so that biases and scales of norms cannot hide
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3 + 0.1)
    before, converted = model(IDS).logits, copy.deepcopy(model)
    for path, part in converted.named_modules():
        if convert := converters.get(path.rpartition(".")[2]):
            for parameter in part.parameters():
                parameter.copy_(convert(parameter))
    assert not torch.allclose(converted(IDS).logits, before, atol=1e-3)
    if name == "gptj":
        monkeypatch.setattr(module, "apply_rotary_pos_emb", halves)
    else:
        monkeypatch.setattr(module, "apply_rotary_pos_emb", interleaved)
    assert not torch.allclose(model(IDS).logits, before, atol=1e-3)
    torch.testing.assert_close(converted(IDS).logits, before, atol=2e-5, rtol=1e-4)
