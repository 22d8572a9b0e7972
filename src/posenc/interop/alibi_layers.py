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
    **others: Any,
) -> tuple[Tensor, None]:
    """``BloomAttention.forward``."""
    heads = layer._reshape(layer.query_key_value(hidden_states))
    dropout, scaling = layer.attention_dropout.p, layer.inv_norm_factor
    out = _attended(layer, told, heads, layer_past, attention_mask, dropout, scaling, others)
    return F.dropout(layer.dense(out), layer.hidden_dropout, layer.training) + residual, None


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
    shape = (layer.n_heads, layer.head_dim)
    heads = [part.unflatten(-1, shape).transpose(1, 2) for part in mixed.chunk(3, dim=2)]
    if isinstance(attention_mask, Tensor):
        attention_mask = ~attention_mask  # in this model true hides a key
    dropout, scaling = layer.attn_dropout_p, layer.softmax_scale
    out = _attended(layer, told, heads, past_key_values, attention_mask, dropout, scaling, others)
    return layer.out_proj(out), None


def falcon(
    layer: Any,
    told: ToldBias,
    hidden_states: Tensor,
    alibi: Tensor | None = None,
    attention_mask: ToldMask | Tensor | None = None,
    position_ids: Tensor | None = None,
    layer_past: Any = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """``FalconAttention.forward`` with ALiBi."""
    split = layer._split_heads(layer.query_key_value(hidden_states))
    heads = [part.transpose(1, 2) for part in split]
    dropout, scaling = layer.attention_dropout.p, layer.inv_norm_factor
    out = _attended(layer, told, heads, layer_past, attention_mask, dropout, scaling, others)
    return layer.dense(out), None


def _attended(
    layer: Any,
    told: ToldBias,
    heads: Any,
    cache: Any,
    mask: ToldMask | Tensor | None,
    dropout: float,
    scaling: float,
    others: dict[str, Any],
) -> Tensor:
    """What attention gives for queries, keys and values, its heads side by side."""
    query, key, value = heads
    if cache is not None:
        key, value = cache.update(key, value, layer.layer_idx)
    dropout = dropout if layer.training else 0.0
    weights = others.get("output_attentions")
    named: dict[str, Any] = {"position_bias": told, "output_attentions": weights}
    out, _ = attend(layer, query, key, value, mask, dropout, scaling, **named)
    return out.flatten(2)


def without_weights(block: nn.Module, *arguments: Any, **named: Any) -> Any:
    """The forward pass of a block that does not tell its attention that weights are wanted."""
    if named.get("output_attentions"):
        raise ValueError("A patched model never forms the weights that output_attentions asks for.")
    return type(block).forward(block, *arguments, **named)
