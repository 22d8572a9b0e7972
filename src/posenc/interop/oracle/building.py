"""Small models of a configuration: as it is where positions need it, narrow everywhere else."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch
from torch import nn

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
"""Fields that no position depends on, and their largest values here."""

# fmt: off
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers",
          "decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth", "e_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads", "num_encoder_attention_heads",
         "attention_heads", "num_decoder_attention_heads", "encoder_heads", "decoder_heads")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_decoder_key_value_heads",
          "decoder_num_key_value_heads", "encoder_num_key_value_heads",
          "num_encoder_key_value_heads")
WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim", "model_dim")
# fmt: on
COUNT = 4


def shrunk(config: Any, depth: int = 6) -> dict[str, Any]:
    """Arguments with few heads of the same width, nested ones too, and at most ``depth`` layers."""
    plain = config.to_dict()
    alias = dict(type(config).attribute_map)

    def sizes(names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        for name in names:
            field = alias.get(name, name)
            if type(value := plain.get(field)) is int:
                yield field, value

    values: dict[str, Any] = {
        name: {**shrunk(inner, depth), "model_type": inner.model_type}
        for name in plain
        if hasattr(inner := vars(config).get(name), "to_dict")
    }
    values |= {field: min(SMALL[name], value) for name in SMALL for field, value in sizes((name,))}
    heads = [value for _, value in sizes(HEADS)]
    values |= {field: min(COUNT, value) for field, value in sizes(HEADS)}
    for field, value in sizes(GROUPS):
        values[field] = min(2 if value < max(heads, default=0) else COUNT, value)
    if heads:
        few = min(COUNT, heads[0])
        values |= {f: value // heads[0] * few for f, value in sizes(WIDTHS) if not value % heads[0]}
    layers = [value for _, value in sizes(LAYERS)]
    values |= {field: min(depth, value) for field, value in sizes(LAYERS)}
    for name, value in plain.items():
        if isinstance(value, list) and layers and len(value) == layers[0] > depth:
            values[name] = value[:depth]
    for name in ("image_size", "img_size"):
        if type(plain.get(name)) is int and type(plain.get("patch_size")) is int:
            values[name] = 4 * plain["patch_size"]
    return values


def classes_of(kind: type) -> list[type]:
    """The models whose configuration is of a class, the plainest first."""
    from transformers import PreTrainedModel

    module = import_module(kind.__module__.replace("configuration_", "modeling_"))
    found = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, PreTrainedModel)
        if getattr(each, "config_class", None) is kind and each.__module__ == module.__name__
        if not each.__name__.lower().endswith("pretrainedmodel")
        if not each.__name__.startswith("Pretrained")
    ]
    return sorted(found, key=lambda each: ("For" in each.__name__, found.index(each)))


def built(config: Any, attention: str = "eager", device: str = "cpu") -> nn.Module:
    """A model of a configuration, random but the same every time."""
    errors = []
    whole = lambda kind: ("For" in kind.__name__, not kind.__name__.endswith("Model"))  # noqa: E731
    for kind in sorted(classes_of(type(config)), key=whole):
        try:
            with torch.random.fork_rng(devices=[]), torch.device(device):
                torch.manual_seed(0)
                return kind._from_config(config, attn_implementation=attention).eval()  # type: ignore[attr-defined]
        except Exception as error:  # whatever a class raises of a configuration
            errors.append(f"{kind.__name__}: {type(error).__name__}: {error}")
    raise ValueError("; ".join(errors)[:500] or f"{type(config).__name__} has no model.")


def asked(config: Any) -> nn.Module:
    """A model of a configuration with few layers and heads of the same width."""
    return built(type(config).from_dict({**config.to_dict(), **shrunk(config)}))
