"""The ALiBi of Bloom, MPT and Falcon: their own biases and layers, compared with ours.

These models form their scores themselves, past transformers' attention interface, so the
``forward`` of each layer is replaced.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.encodings.scores import ALiBi
from posenc.interop.attention import ToldBias, attend
from posenc.interop.changes import Changes
from posenc.numerics import slopes

LENGTH = 5000
"""Of the row in which a model's own bias is compared with ours."""


@dataclass(frozen=True)
class Family:
    """One model's way to ALiBi."""

    exact: Callable[[Any], ALiBi]  # the bias that its layer means
    heads: Callable[[Any, Tensor], Sequence[Tensor]]  # queries, keys and values of hidden states
    dropout: Callable[[Any], float]  # of attention
    scale: str  # the attribute that scores are multiplied with
    out: Callable[[Any, Tensor, Any], Tensor]  # (layer, heads side by side, residual)
    bias: Callable[[Any, int], Tensor]  # (layer, length) → [heads, length]: of the last query
    rounding: float  # of the bias, over the largest of a head; Falcon's is bfloat16's
    rounding_by_head: float = 0.0  # where slopes are powers of a rounded base
    counts_padding: bool = False  # whether distances count the padding between two tokens


def _mpt_heads(layer: Any, hidden: Tensor) -> Sequence[Tensor]:
    mixed = layer.Wqkv(hidden)
    if layer.clip_qkv:
        mixed = mixed.clamp(min=-layer.clip_qkv, max=layer.clip_qkv)
    shape = (layer.n_heads, layer.head_dim)
    return [part.unflatten(-1, shape).transpose(1, 2) for part in mixed.chunk(3, dim=2)]


def _falcon_bias(layer: Any) -> ALiBi:
    # It scales products and biases alike.
    scaled = [m / math.sqrt(layer.head_dim) for m in slopes.alibi(layer.num_heads)]
    return ALiBi(layer.num_heads, slopes=scaled)


def _falcon_heads(layer: Any, hidden: Tensor) -> Sequence[Tensor]:
    return [part.transpose(1, 2) for part in layer._split_heads(layer.query_key_value(hidden))]


def _bloom_bias(layer: Any, length: int) -> Tensor:
    build = _own(layer, "build_alibi_tensor")
    return build(torch.ones(1, length, dtype=torch.int64), layer.num_heads, torch.float32)[:, 0]


def _own(layer: Any, name: str) -> Callable[..., Tensor]:
    return getattr(sys.modules[type(layer).__module__], name)


FAMILIES = {
    "BloomAttention": Family(
        lambda layer: ALiBi(layer.num_heads),
        lambda layer, hidden: layer._reshape(layer.query_key_value(hidden)),
        lambda layer: layer.attention_dropout.p,
        "inv_norm_factor",
        lambda layer, x, residual: (
            F.dropout(layer.dense(x), layer.hidden_dropout, layer.training) + residual
        ),
        _bloom_bias,
        rounding=2.0**-22,
        rounding_by_head=2.0**-23,
    ),
    "FalconAttention": Family(
        _falcon_bias,
        _falcon_heads,
        lambda layer: layer.attention_dropout.p,
        "inv_norm_factor",
        lambda layer, x, _: layer.dense(x),
        lambda layer, length: _bloom_bias(layer, length) * layer.inv_norm_factor,
        rounding=2.0**-6,
    ),
    "MptAttention": Family(
        lambda layer: ALiBi(layer.n_heads),
        _mpt_heads,
        lambda layer: layer.attn_dropout_p,
        "softmax_scale",
        lambda layer, x, _: layer.out_proj(x),
        lambda layer, length: _own(layer, "build_mpt_alibi_tensor")(layer.n_heads, length)[:, 0],
        rounding=2.0**-22,
        counts_padding=True,
    ),
}


def forward(
    layer: Any, told: ToldBias, hidden_states: Tensor, residual: Any = None, **named: Any
) -> tuple[Tensor, None]:
    """The ``forward`` of a layer with ``told`` in place of its own bias."""
    family, mask = FAMILIES[type(layer).__name__], named.get("attention_mask")
    query, key, value = family.heads(layer, hidden_states)
    cache = named.get("layer_past", named.get("past_key_values"))
    if cache is not None:
        key, value = cache.update(key, value, layer.layer_idx)
    if "position_bias" in named and isinstance(mask, Tensor):
        mask = ~mask  # in MPT true hides a key
    dropout = family.dropout(layer) if layer.training else 0.0
    asked: Any = {"position_bias": told, "output_attentions": named.get("output_attentions")}
    scale = getattr(layer, family.scale)
    out, _ = attend(layer, query, key, value, mask, dropout, scale, **asked)
    return family.out(layer, out.flatten(2), residual), None


def without_weights(block: nn.Module, *arguments: Any, **named: Any) -> Any:
    """The forward pass of a block that does not tell its attention that weights are wanted."""
    if named.get("output_attentions"):
        raise ValueError("A patched model never forms the weights that output_attentions asks for.")
    return type(block).forward(block, *arguments, **named)


def take(model: nn.Module, layers: list[Any], changes: Changes) -> tuple[ALiBi, float]:
    """The bias of these layers, put in, and how far their own lies from it."""
    first, kind = layers[0], type(layers[0]).__name__
    family, falcon = FAMILIES[kind], kind == "FalconAttention"
    if falcon and not first.config.alibi:
        raise TypeError("This Falcon rotates and has no ALiBi; use patch.")
    if falcon and first.config._attn_implementation == "eager":
        raise ValueError("With attn_implementation='eager' Falcon's ALiBi is added twice.")
    bias = family.exact(first)
    own_error = _check_slopes(first, family, bias)
    told = ToldBias(bias, counts_padding=family.counts_padding)
    for layer in layers:
        changes.set(layer, "forward", partial(forward, layer, told))
    for module in model.modules():
        if falcon and "use_alibi" in vars(module):
            changes.set(module, "use_alibi", False)  # it would add it to the mask besides
        if getattr(module, "attn", None) in layers:  # a block of MPT
            changes.set(module, "forward", partial(without_weights, module))
    return bias, own_error


def _check_slopes(layer: Any, family: Family, bias: ALiBi) -> float:
    """Compare the model's own bias with ours; how far they lie apart at most."""
    own = family.bias(layer, LENGTH).cpu().double()
    ours = bias.profile(LENGTH - 1 - torch.arange(LENGTH), dtype=torch.float64)
    apart = (own - own[:, -1:] - ours).abs()
    rounding = family.rounding + family.rounding_by_head * len(own)
    if (apart > rounding * own.abs().amax(1, keepdim=True)).any():
        raise ValueError(f"{type(layer).__name__} adds something else than {bias}.")
    return float(apart.max())


def check_outputs(layer: nn.Module, theirs: Tensor, ours: Tensor) -> None:
    """Refuse a model that says something else by our bias."""
    rounding = FAMILIES[type(layer).__name__].rounding
    allowed = max(rounding, 2.0**-12, 64 * torch.finfo(theirs.dtype).eps)
    if not (theirs - ours).abs().max() <= allowed * theirs.abs().max():
        raise ValueError(f"{type(layer).__name__} gives something else with our bias.")
