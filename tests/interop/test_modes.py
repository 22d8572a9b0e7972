"""Models that are measured are put into evaluation, and every part into its own mode again."""

from typing import Any

import pytest
import torch
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
)

from posenc.interop.huggingface import convert_pairing, move_cached_keys, patch

TINY: dict[str, Any] = {"vocab_size": 32, "hidden_size": 32, "num_attention_heads": 4}


def llama():
    config = LlamaConfig(**TINY, intermediate_size=32, num_hidden_layers=2)
    return LlamaForCausalLM(config)


def moved(model):
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.ones(1, 3, dtype=torch.long), past_key_values=cache)
    move_cached_keys(cache, model, torch.arange(2, 5))


USES = {
    "convert_pairing": (llama, lambda model: convert_pairing(model, to="interleaved")),
    "patch": (llama, patch),
    "move_cached_keys": (llama, moved),
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
