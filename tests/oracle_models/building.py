"""Tiny random models of every type that transformers registers: as wide where positions need it."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch
from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel

SMALL = {
    "vocab_size": 64, "text_vocab_size": 64, "audio_vocab_size": 64, "type_vocab_size": 2,
    "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "num_experts_per_tok": 2, "moe_topk": 2, "moe_k": 2, "n_group": 1, "topk_group": 1,
    "intermediate_size": 32, "ffn_dim": 32, "ffn_hidden_size": 32, "moe_intermediate_size": 32,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "d_ff": 32, "n_inner": 32, "dim_feedforward": 32,
    "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32, "ffn_embed_dim": 32,
    "q_lora_rank": 16, "kv_lora_rank": 16, "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 16, "first_k_dense_replace": 1, "zero_expert_num": 2,
    "n_shared_experts": 1, "num_shared_experts": 1, "mamba_expand": 2, "moe_layers_start_index": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "index_n_heads": 2,
    "decoder_start_token_id": 1, "image_token_id": 60, "video_token_id": 61,
}  # fmt: skip
"""Fields that no position depends on."""

# fmt: off
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
          "decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth", "e_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads", "num_encoder_attention_heads",
         "attention_heads", "num_decoder_attention_heads", "encoder_heads", "decoder_heads")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_decoder_key_value_heads",
          "decoder_num_key_value_heads", "encoder_num_key_value_heads",
          "num_encoder_key_value_heads")
# fmt: on
WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim", "model_dim")
DEPTH, COUNT = 6, 4


HALF_ROTATED = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
                "mrope_section": [8, 12, 12]}  # fmt: skip

OVERRIDES: dict[str, dict[str, Any]] = {
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default",
                                                                   "rope_theta": 5e4}}},
    "qwen4_exp_text": {"num_key_value_heads": 2, "head_dim": 64, "num_attention_heads": 4},
    "lilt": {"hidden_size": 768, "num_attention_heads": 12},
    "squeezebert": {"embedding_size": 256, "hidden_size": 256, "num_attention_heads": 4},
    "rembert": {"input_embedding_size": 64},
    "xmod": {"default_language": "en_XX"},
    "swinv2": {"image_size": 224},
    "gemma3n_text": {"num_hidden_layers": 8, "num_kv_shared_layers": 2,
                     "layer_types": ["sliding_attention", "full_attention"] * 4},
    "step3p5": {"sliding_window": 512},
    "deepseek_v2": {"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
              "n_shared_experts": 1},
    **{kind: {"prediction_length": 4, "context_length": 9, "label_length": 3}
       for kind in ("autoformer", "informer", "time_series_transformer")},
    "esm": {"vocab_size": 33, "position_embedding_type": "rotary", "mask_token_id": 32},
    "glm4v_moe_text": {"rope_parameters": HALF_ROTATED, "head_dim": 128},
    "glm4v_text": {"rope_parameters": HALF_ROTATED},
    "glm_image_text": {"rope_parameters": HALF_ROTATED},
    "gpt_neo": {"num_layers": DEPTH, "attention_types": [[["global", "local"], DEPTH // 2]]},
    "granitemoehybrid": {"position_embedding_type": "rope", "layer_types": ["attention"] * 4,
                         "num_hidden_layers": 4},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "hunyuan_vl_text": {"head_dim": 128},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "full_attention"],
                 "num_hidden_layers": 4},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 4, "head_dim": 64, "num_attention_heads": 4,
                 "hidden_size": 256},
    "t5gemma2_decoder": {},
    "zamba2": {"use_mem_rope": True, "num_hidden_layers": 3,
               "layers_block_type": ["linear_attention", "hybrid", "hybrid"]},
    "bamba": {"attn_layer_indices": [1, 3]},
    "clvp_encoder": {"hidden_size": 256, "projection_dim": 256},
    "mllama_text_model": {"cross_attention_layers": [3]},
    "muse_spark_text": {}, "wav2vec2-bert": {"position_embeddings_type": "rotary"},
    "roformer": {},
}  # fmt: skip
"""What some types cannot be built without, and what shows more of others."""


def config_of(model_type: str, **fields: Any) -> PreTrainedConfig:
    """The configuration of a tiny model: a few layers and heads, as wide as they are by default."""
    kind = CONFIG_MAPPING[model_type]
    small = shrunk(kind(**OVERRIDES.get(model_type, {})))
    small.update(OVERRIDES.get(model_type, {}))
    small.update(fields)
    return kind(**small)


def shrunk(config: PreTrainedConfig) -> dict[str, Any]:
    """Values for the constructor of a configuration, nested ones included."""
    values = {}
    plain = config.to_dict()
    for name in plain:
        inner = vars(config).get(name)
        if isinstance(inner, PreTrainedConfig):
            values[name] = {**shrunk(inner), "model_type": inner.model_type}
    alias = dict(type(config).attribute_map)
    named = lambda name: alias.get(name, name)  # noqa: E731
    has = lambda name: isinstance(plain.get(name), int) and not isinstance(plain.get(name), bool)  # noqa: E731
    for name, value in SMALL.items():
        if has(named(name)):
            values[named(name)] = min(value, plain[named(name)])
    depth = DEPTH
    for name in LAYERS:
        if has(named(name)):
            values[named(name)] = min(depth, plain[named(name)])
    counts = [plain[named(n)] for n in HEADS if has(named(n))]
    count = COUNT
    for name in HEADS:
        if has(named(name)):
            values[named(name)] = min(count, plain[named(name)])
    for name in GROUPS:
        if has(named(name)):
            values[named(name)] = 2 if plain[named(name)] < max(counts, default=0) else count
            values[named(name)] = min(values[named(name)], plain[named(name)])
    if counts:
        for name in WIDTHS:
            if has(named(name)) and plain[named(name)] % counts[0] == 0:
                values[named(name)] = plain[named(name)] // counts[0] * min(count, counts[0])
    total = next((plain[named(n)] for n in LAYERS if has(named(n))), None)
    for name, value in plain.items():
        if isinstance(value, list) and total and len(value) == total and total > depth:
            values[name] = value[:depth]
    for name in ("image_size", "img_size"):
        if has(name) and has("patch_size"):
            values[name] = 4 * plain["patch_size"]
    return values


def classes_of(config: PreTrainedConfig) -> list[type[PreTrainedModel]]:
    """The models of a type, the plainest first."""
    return models_of(type(config))


def models_of(kind: type[PreTrainedConfig]) -> list[type[PreTrainedModel]]:
    """The models whose configuration is of this class, the plainest first."""
    code = kind.__module__
    found = []
    for name in (code.replace("configuration_", "modeling_"),):
        module = import_module(name)
        for each in vars(module).values():
            if (
                inspect.isclass(each)
                and issubclass(each, PreTrainedModel)
                and getattr(each, "config_class", None) is kind
                and each.__module__ == module.__name__
                and not each.__name__.endswith("PreTrainedModel")
            ):
                found.append(each)
    return sorted(found, key=lambda each: ("For" in each.__name__, found.index(each)))


def built(config: PreTrainedConfig, *, meta: bool = False) -> nn.Module:
    """A model of a configuration, random but the same every time."""
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    errors = []
    for kind in classes_of(config):
        try:
            if meta:
                with torch.device("meta"):
                    return kind._from_config(config, attn_implementation="eager").eval()
            return kind._from_config(config, attn_implementation="eager").eval()
        except Exception as error:
            errors.append(f"{kind.__name__}: {type(error).__name__}: {error}")
    raise ValueError("; ".join(errors)[:500] or "no class")


def all_built(config: PreTrainedConfig) -> Iterator[nn.Module]:
    """A model of each class that can be built, without weights: their shapes."""
    for kind in classes_of(config):
        try:
            with torch.device("meta"):
                yield kind._from_config(config, attn_implementation="eager").eval()
        except Exception:
            continue


def types() -> Iterator[str]:
    return iter(sorted(CONFIG_MAPPING.keys()))
