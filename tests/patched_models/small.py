"""A few tiny models of transformers, and what they are asked."""

import copy

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    Ministral3Config,
    Phi3Config,
    Qwen3Config,
)
from transformers import logging as transformers_logging

transformers_logging.disable_progress_bar()

SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
LISTS = {"short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
         "long_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 9.0]}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama3.1": LlamaConfig(**SIZES, rope_parameters={
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 128}),
    "extended": Qwen3Config(**SIZES, head_dim=16, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "beta_fast": 16.0,
        "original_max_position_embeddings": 128}),
    "ministral3": Ministral3Config(**SIZES, head_dim=16, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 64.0, "llama_4_scaling_beta": 1.0,
        "original_max_position_embeddings": 8}),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=8,
                               layer_types=["sliding_attention", "full_attention"]),
    "phi3-long": Phi3Config(**SIZES, original_max_position_embeddings=256, rope_parameters={
        "rope_type": "longrope", "rope_theta": 1e4, **LISTS}),
}  # fmt: skip
IDS = torch.tensor([[5, 9, 33, 2, 71, 8, 90, 14, 6, 55, 21, 3]])
YARN = {"rope_type": "yarn", "factor": 4.0}


def built(name: str = "llama") -> nn.Module:
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(config).eval()


@torch.no_grad()
def logits(model, **inputs):
    return model(**{"input_ids": IDS % 32, **inputs}).logits


def near(one, other, atol=2e-5):
    torch.testing.assert_close(one, other, rtol=0, atol=atol)
