"""The attention of Bloom, MPT and Falcon with ALiBi, up to their own scores and from there on.

These models form their scores themselves, past transformers' attention interface. Each function
here stands for the ``forward`` of one layer, with ``told`` in place of the model's own bias.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from posenc.interop.attention import ToldBias, attend
from posenc.interop.told_mask import ToldMask


def bloom(
    layer: Any,
    told: ToldBias,
    hidden_states: Tensor,
    residual: Tensor,
    alibi: Tensor | None = None,
    attention_mask: ToldMask | Tensor | None = None,
    layer_past: Any = None,
    use_cache: bool = False,
    output_attentions: bool = False,
    **_: Any,
) -> tuple[Tensor, None]:
    """``BloomAttention.forward``."""
    query, key, value = layer._reshape(layer.query_key_value(hidden_states))
    if layer_past is not None:
        key, value = layer_past.update(key, value, layer.layer_idx)
    out, _weights = attend(
        layer,
        query,
        key,
        value,
        attention_mask,
        dropout=layer.attention_dropout.p if layer.training else 0.0,
        scaling=layer.inv_norm_factor,
        position_bias=told,
        output_attentions=output_attentions,
    )
    out = layer.dense(out.flatten(2))
    return F.dropout(out, layer.hidden_dropout, layer.training) + residual, None


def mpt(
    layer: Any,
    told: ToldBias,
    hidden_states: Tensor,
    position_bias: Tensor | None = None,
    past_key_values: Any = None,
    attention_mask: ToldMask | Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """``MptAttention.forward``."""
    mixed = layer.Wqkv(hidden_states)
    if layer.clip_qkv:
        mixed = mixed.clamp(min=-layer.clip_qkv, max=layer.clip_qkv)
    query, key, value = (
        part.unflatten(-1, (layer.n_heads, layer.head_dim)).transpose(1, 2)
        for part in mixed.chunk(3, dim=2)
    )
    if past_key_values is not None:
        key, value = past_key_values.update(key, value, layer.layer_idx)
    if isinstance(attention_mask, Tensor):
        attention_mask = ~attention_mask  # in this model true hides a key
    out, _weights = attend(
        layer,
        query,
        key,
        value,
        attention_mask,
        dropout=layer.attn_dropout_p if layer.training else 0.0,
        scaling=layer.softmax_scale,
        position_bias=told,
        output_attentions=others.get("output_attentions"),
    )
    return layer.out_proj(out.flatten(2)), None


def falcon(
    layer: Any,
    told: ToldBias,
    hidden_states: Tensor,
    alibi: Tensor | None = None,
    attention_mask: ToldMask | Tensor | None = None,
    position_ids: Tensor | None = None,
    layer_past: Any = None,
    use_cache: bool = False,
    output_attentions: bool = False,
    position_embeddings: Any = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """``FalconAttention.forward`` with ALiBi."""
    split = layer._split_heads(layer.query_key_value(hidden_states))
    query, key, value = (part.transpose(1, 2) for part in split)
    if layer_past is not None:
        key, value = layer_past.update(key, value, layer.layer_idx)
    out, _weights = attend(
        layer,
        query,
        key,
        value,
        attention_mask,
        dropout=layer.attention_dropout.p if layer.training else 0.0,
        scaling=layer.inv_norm_factor,
        position_bias=told,
        output_attentions=output_attentions,
    )
    return layer.dense(out.flatten(2)), None


def without_weights(block: nn.Module, *arguments: Any, **named: Any) -> Any:
    """The forward pass of a block that does not tell its attention that weights are wanted."""
    if named.get("output_attentions"):
        raise ValueError(
            "output_attentions is set, and a patched model never forms the weights. Take the patch "
            "out to look at them."
        )
    return type(block).forward(block, *arguments, **named)
