"""DroPE: a model without its rotary positions sees a set, and has them back when that is undone."""

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from posenc.interop.huggingface import drop_rotary

SIZES = {"vocab_size": 31, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8}  # fmt: skip


def llama(layers=1, **more):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=layers, **more)).eval()


def gemma3():
    torch.manual_seed(0)
    types = ["sliding_attention", "full_attention"]
    config = Gemma3TextConfig(**SIZES, num_hidden_layers=2, layer_types=types, sliding_window=64)
    return Gemma3ForCausalLM(config).eval()


@torch.no_grad()
def logits(model, ids):
    return model(torch.tensor(ids)).logits


@pytest.mark.parametrize("build", [lambda: llama(2), gemma3], ids=["llama", "gemma3"])
def test_it_is_the_model_with_frequencies_of_zero(build):
    """transformers' own module, its buffers set to 0: bit for bit."""
    ids, model, by_hand = [[3, 5, 8, 2, 1, 30, 7]], build(), build()
    before = logits(model, ids)
    for name, buffer in by_hand.named_buffers():
        if name.endswith("inv_freq"):
            buffer.zero_()
    dropped = drop_rotary(model)
    assert not dropped.config_follows
    assert torch.equal(logits(model, ids), logits(by_hand, ids))
    dropped.undo()
    assert torch.equal(logits(model, ids), before)


def test_an_attention_factor_goes_with_the_rotation():
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
            "original_max_position_embeddings": 64}  # fmt: skip
    ids, model, plain = [[3, 5, 8, 2]], llama(rope_parameters=yarn), llama()
    for each in (model, plain):
        drop_rotary(each)
    assert torch.equal(logits(model, ids), logits(plain, ids))
