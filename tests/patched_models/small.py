"""A few tiny models of transformers, and what they are asked."""

import copy

import torch
import transformers as tf
from torch import nn

tf.logging.disable_progress_bar()

SIZES = {"vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip
LISTS = {"short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
         "long_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 9.0]}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0}


def rope(kind: str, base: float, trained: int = 128, **more) -> dict[str, dict]:
    said = {"rope_type": kind, "rope_theta": base, "original_max_position_embeddings": trained}
    return {"head_dim": 16, "rope_parameters": {**said, **more}}


CONFIGS = {
    "llama": tf.LlamaConfig(**SIZES),
    "llama3.1": tf.LlamaConfig(
        **SIZES, **rope("llama3", 5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
    ),
    "extended": tf.Qwen3Config(**SIZES, **rope("yarn", 1e6, factor=4.0, beta_fast=16.0)),
    "ministral3": tf.Ministral3Config(
        **SIZES, **rope("yarn", 1e4, 8, factor=64.0, llama_4_scaling_beta=1.0)
    ),
    "gemma3": tf.Gemma3TextConfig(
        **SIZES, head_dim=16, sliding_window=8, layer_types=["sliding_attention", "full_attention"]
    ),
    "phi3-long": tf.Phi3Config(
        **SIZES,
        original_max_position_embeddings=256,
        rope_parameters={"rope_type": "longrope", "rope_theta": 1e4, **LISTS},
    ),
}
IDS = torch.tensor([[5, 9, 33, 2, 71, 8, 90, 14, 6, 55, 21, 3]])


def built(name: str = "llama") -> nn.Module:
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = "eager"
    return tf.AutoModelForCausalLM.from_config(config).eval()


@torch.no_grad()
def logits(model, **inputs):
    return model(**{"input_ids": IDS % 32, **inputs}).logits


def near(one, other, atol=2e-5):
    torch.testing.assert_close(one, other, rtol=0, atol=atol)
