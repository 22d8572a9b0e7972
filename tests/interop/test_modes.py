"""Models that are measured are put into evaluation, and every part into its own mode again."""

from typing import Any

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from posenc.interop.biases import patch_biases
from posenc.interop.huggingface import convert_pairing, move_cached_keys, patch

TINY: dict[str, Any] = {"vocab_size": 32, "hidden_size": 32, "num_attention_heads": 4}


def llama():
    config = LlamaConfig(**TINY, intermediate_size=32, num_hidden_layers=2)
    return LlamaForCausalLM(config)


def bloom():
    return BloomForCausalLM(BloomConfig(**TINY, n_layer=2, hidden_dropout=0.5))


def t5():
    sizes: dict[str, Any] = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_heads": 4, "num_layers": 1}
    return T5ForConditionalGeneration(T5Config(vocab_size=32, **sizes))


def moved(model):
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.ones(1, 3, dtype=torch.long), past_key_values=cache)
    move_cached_keys(cache, model, torch.arange(2, 5))


USES = {
    "convert_pairing": (llama, lambda model: convert_pairing(model, to="interleaved")),
    "patch": (llama, patch),
    "move_cached_keys": (llama, moved),
    "patch_biases of ALiBi": (bloom, patch_biases),
    "patch_biases of T5": (t5, patch_biases),
}


@pytest.mark.parametrize("name", USES)
def test_models_that_train_in_parts_still_do(name):
    build, use = USES[name]
    model = build().train()
    for part in list(model.modules())[3::4]:  # frozen parts, as batch norms and towers are
        part.training = False
    modes = {part: part.training for part in model.modules()}
    use(model)
    assert {part: part.training for part in modes} == modes
