"""Small models of every type that transformers registers: as wide where positions need it."""

from collections.abc import Iterator
from typing import Any

from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig

from posenc.interop import oracle

DEPTH = 6

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
    """The configuration of a small model: few layers and heads, as wide as they are by default."""
    kind, own = CONFIG_MAPPING[model_type], OVERRIDES.get(model_type, {})
    return kind(**{**oracle.shrunk(kind(**own), DEPTH), **own, **fields})


def built(config: PreTrainedConfig, *, meta: bool = False) -> nn.Module:
    """A model of a configuration, random but the same every time."""
    return oracle.built(config, device="meta" if meta else "cpu")


def types() -> Iterator[str]:
    return iter(sorted(CONFIG_MAPPING.keys()))
