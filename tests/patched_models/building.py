"""Tiny random models, with heads where the type has one, and what they are asked with."""

import copy
from functools import cache
from typing import Any

import torch
import transformers
from tests.oracle_models import building
from torch import Tensor, nn

NAMED = tuple(
    """
    llama mistral gemma gemma2 gemma3_text gpt_neox phi phi3 qwen2 qwen3 stablelm
    mixtral qwen2_moe qwen3_moe qwen3_next olmo olmo2 olmo3 olmoe granite granitemoe
    glm glm4 glm4_moe glm4_moe_lite falcon starcoder2 deepseek_v3 deepseek_v32 smollm3 exaone4
    ernie4_5 ernie4_5_moe minimax minimax_m2 modernbert nomic_bert nemotron seed_oss
    ministral ministral3 mistral4 phimoe persimmon helium arcee bitnet
    hunyuan_v1_dense hunyuan_v1_moe lfm2 bamba falcon_h1 apertus dots1 longcat_flash jetmoe
    jina_embeddings_v3 gte eurobert gemma3n_text gemma4_text
    cohere cohere2 gpt_oss llama4_text deepseek_v2 gptj codegen esm moonshine
    gemma4 qwen2_vl qwen2_5_vl qwen3_vl qwen3_5
    """.split()  # noqa: SIM905
)
"""The types that are tried, each whole."""

REPRESENTATIVES = ("gpt_oss", "gptj", "qwen3_vl")
"""A module of another form, attention without a module, and axes: what every test run tries."""

FIELDS: dict[str, dict[str, Any]] = {
    "gemma3n_text": {"intermediate_size": [32] * 8, "num_hidden_layers": 8,
                     "hidden_size": 128, "head_dim": 32,
                     "activation_sparsity_pattern": [0.0] * 8},
    "esm": {"token_dropout": False, "pad_token_id": 1},
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "bamba": {"hidden_size": 64, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16,
              "attn_layer_indices": [1, 3]},
    "falcon_h1": {"hidden_size": 64, "mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16,
                  "mamba_d_state": 16, "head_dim": 16},
    "qwen3_next": {"linear_key_head_dim": 16, "linear_value_head_dim": 16,
                   "linear_num_key_heads": 2, "linear_num_value_heads": 4},
    "seed_oss": {"hidden_size": 128, "head_dim": 32},
    "gptj": {"n_embd": 64, "n_head": 4, "rotary_dim": 8},
    "codegen": {"n_embd": 64, "n_head": 4, "rotary_dim": 8},
    "moonshine": {"hidden_size": 144, "encoder_num_attention_heads": 4,
                  "encoder_num_key_value_heads": 4, "decoder_num_attention_heads": 4,
                  "decoder_num_key_value_heads": 4},
}  # fmt: skip
"""What some types need besides."""

NARROW: dict[str, Any] = {
    "text_config": {"hidden_size": 128, "head_dim": 128, "num_attention_heads": 2,
                    "num_key_value_heads": 1},
    "vision_config": {"hidden_size": 64, "num_heads": 4, "out_hidden_size": 128, "depth": 2,
                      "deepstack_visual_indexes": [0, 1]},
}  # fmt: skip
SHALLOW: dict[str, Any] = {
    "text_config": {"linear_key_head_dim": 16, "linear_value_head_dim": 16,
                    "linear_num_key_heads": 2, "linear_num_value_heads": 4},
    "vision_config": {"depth": 1},
}  # fmt: skip
INSIDE: dict[str, dict[str, Any]] = {
    "qwen3_vl": NARROW,
    "qwen3_5": SHALLOW,
    "qwen2_vl": {"vision_config": {"depth": 1}},
    "qwen2_5_vl": {"vision_config": {"depth": 1, "fullatt_block_indexes": [0]}},
}
"""What some types need in their parts."""

HEADS = ("CausalLM", "ImageTextToText", "MaskedLM", "SpeechSeq2Seq")
"""What models end with, the most useful first."""

IDS = torch.tensor([[5, 9, 30, 2, 21, 8, 20, 14, 6, 25, 11, 3]])


def missing(model_type: str) -> str | None:
    """Why a type cannot be tried with the transformers that is installed; None if it can."""
    if model_type not in transformers.CONFIG_MAPPING:
        return f"transformers {transformers.__version__} has no type {model_type}"
    return None


@cache
def _config(model_type: str) -> Any:
    depth, building.DEPTH = building.DEPTH, 4
    try:
        config = building.config_of(model_type, **FIELDS.get(model_type, {}))
    finally:
        building.DEPTH = depth
    for part, fields in INSIDE.get(model_type, {}).items():
        for field, value in fields.items():
            setattr(getattr(config, part), field, value)
    for each in (config, config.get_text_config()):
        each.eos_token_id = None
    return config


def built(model_type: str) -> nn.Module:
    """A model of a type, the same every time."""
    config = copy.deepcopy(_config(model_type))
    torch.manual_seed(0)
    for name in (*(f"AutoModelFor{head}" for head in HEADS), "AutoModel"):
        kind = getattr(transformers, name)
        if type(config) in kind._model_mapping:
            # Experts by their plain form: the others have no float64.
            return kind.from_config(
                config, attn_implementation="eager", experts_implementation="eager"
            ).eval()
    raise ValueError(f"There is no class for {model_type}.")


def loaded(model: nn.Module, folder: Any) -> nn.Module:
    """A model read from a folder, of the same class."""
    return type(model).from_pretrained(folder, attn_implementation="eager").eval()


def generates(model: nn.Module) -> bool:
    """Whether a model continues texts by itself."""
    return bool(model.can_generate()) and not listens(model)


def listens(model: nn.Module) -> bool:
    """Whether a model is asked with sounds."""
    return model.main_input_name == "input_values"


def inputs(model: nn.Module) -> dict[str, Tensor]:
    """What a model is asked with."""
    if not listens(model):
        return {"input_ids": IDS}
    torch.manual_seed(1)
    return {"input_values": torch.randn(1, 4000), "decoder_input_ids": IDS}


@torch.no_grad()
def answers(model: nn.Module, **named: Any) -> Tensor:
    """Logits, or the last hidden state of a model without a head."""
    given = inputs(model)
    if listens(model):
        given["input_values"] = given["input_values"].to(model.dtype)
    out = model(**{**given, **named})
    found = getattr(out, "logits", None)
    return out.last_hidden_state if found is None else found
