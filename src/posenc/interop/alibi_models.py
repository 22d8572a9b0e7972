"""The ALiBi of Bloom, MPT and Falcon: their own biases and layers, compared with ours."""

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.scores import ALiBi
from posenc.interop import alibi_layers
from posenc.interop.attention import ToldBias
from posenc.interop.modes import in_evaluation
from posenc.interop.told_mask import ToldMask
from posenc.numerics import slopes

LENGTHS = 16, 128, 1000, 5000
"""Of rows in which a model's own bias is compared with ours."""

PROBED = 5, 40
"""Lengths of random rows that run through a layer before and after."""


@dataclass(frozen=True)
class Family:
    """One model's way to ALiBi."""

    forward: Callable[..., Any]  # in place of that of a layer
    bias: Callable[[Any, int], Tensor]  # (layer, length) → [heads, length]: of the last query
    rounding: float  # of the bias, over the largest of a head; Falcon's is bfloat16's
    counts_padding: bool  # whether distances count the padding between two tokens
    rounding_by_head: float = 0.0  # where slopes are powers of a rounded base


def _own(layer: Any, name: str) -> Callable[..., Tensor]:
    return getattr(sys.modules[type(layer).__module__], name)


def _bloom_bias(layer: Any, length: int) -> Tensor:
    build = _own(layer, "build_alibi_tensor")
    return build(torch.ones(1, length, dtype=torch.int64), layer.num_heads, torch.float32)[:, 0]


def _falcon_bias(layer: Any, length: int) -> Tensor:
    return _bloom_bias(layer, length) * layer.inv_norm_factor


def _mpt_bias(layer: Any, length: int) -> Tensor:
    return _own(layer, "build_mpt_alibi_tensor")(layer.n_heads, length)[:, 0]


FAMILIES = {
    "BloomAttention": Family(
        alibi_layers.bloom, _bloom_bias, 2.0**-22, counts_padding=False, rounding_by_head=2.0**-23
    ),
    "FalconAttention": Family(alibi_layers.falcon, _falcon_bias, 2.0**-6, counts_padding=False),
    "MptAttention": Family(alibi_layers.mpt, _mpt_bias, 2.0**-22, counts_padding=True),
}


def take(model: nn.Module, layers: list[Any], changes: Any) -> tuple[ALiBi, float]:
    """The bias of these layers and how far their own lies from it; ``changes`` gets what to set."""
    kind = type(layers[0]).__name__
    family, first = FAMILIES[kind], layers[0]
    if kind == "FalconAttention" and not first.config.alibi:
        raise TypeError("This Falcon rotates and has no ALiBi; use patch.")
    if kind == "BloomAttention" and first.pretraining_tp > 1 and first.slow_but_exact:
        raise ValueError("slow_but_exact leaves out the bias of a projection; set it to False.")
    bias = _exact(first, kind)
    own_error = _check_slopes(first, family, bias)
    told = ToldBias(bias, counts_padding=family.counts_padding)
    _check_layer(first, partial(family.forward, first, told), family)
    for layer in layers:
        changes.add(layer, "forward", partial(family.forward, layer, told))
    for module in model.modules():
        if kind == "FalconAttention" and "use_alibi" in module.__dict__:
            changes.add(module, "use_alibi", False)  # it would add it to the mask besides
        if kind == "MptAttention" and getattr(module, "attn", None) in layers:
            changes.add(module, "forward", partial(alibi_layers.without_weights, module))
    return bias, own_error


def _exact(layer: Any, kind: str) -> ALiBi:
    if kind == "MptAttention":
        return ALiBi(layer.n_heads)
    heads = layer.num_heads
    if kind == "BloomAttention":
        return ALiBi(heads)
    # Falcon scales products and biases alike.
    return ALiBi(heads, slopes=[m / math.sqrt(layer.head_dim) for m in slopes.alibi(heads)])


def _check_slopes(layer: Any, family: Family, bias: ALiBi) -> float:
    """Compare the model's own bias with ours; how far they lie apart at most."""
    most = 0.0
    for length in LENGTHS:
        own = family.bias(layer, length).cpu().double()
        ours = bias.profile(length - 1 - torch.arange(length), dtype=torch.float64)
        apart = (own - own[:, -1:] - ours).abs()
        rounding = family.rounding + family.rounding_by_head * len(own)
        bound = rounding * own.abs().amax(1, keepdim=True)
        if (apart > bound).any():
            raise ValueError(f"{type(layer).__name__} adds something else than {bias}.")
        most = max(most, float(apart.max()))
    return most


@torch.no_grad()
def _check_layer(layer: Any, ours: Callable[..., Any], family: Family) -> None:
    """Run a layer on random rows, by its own forward pass and by ours."""
    weight = next(layer.parameters())
    width = layer.hidden_size
    generator = torch.Generator().manual_seed(0)
    with in_evaluation(layer):
        for length in PROBED:
            hidden = torch.randn(1, length, width, generator=generator).to(weight)
            named = _probe(layer, family, hidden, length)
            theirs = type(layer).forward(layer, hidden, **named)[0]
            told = ToldMask(length, length, is_causal=True)
            made = ours(hidden, **named | {"attention_mask": told})[0]
            # Of whatever dtype the model is, its slopes and its softmax are float32's.
            given = max(torch.finfo(dtype).eps for dtype in (weight.dtype, torch.float32))
            epsilon = max(given, family.rounding / 2**6)
            apart = float((theirs - made).abs().max() / theirs.abs().max())
            if apart > 64 * epsilon or math.isnan(apart):
                raise ValueError(f"{type(layer).__name__} gives something else with our bias.")


def _probe(layer: Any, family: Family, hidden: Tensor, length: int) -> dict[str, Any]:
    """What a layer is to be called with, beside the hidden states."""
    later = torch.ones(length, length, dtype=torch.bool, device=hidden.device).triu(1)[None, None]
    bias = family.bias(layer, length).to(hidden)[:, None]
    if "position_bias" in inspect.signature(type(layer).forward).parameters:  # MPT
        return {"position_bias": bias, "attention_mask": later}
    lowest = torch.finfo(hidden.dtype).min
    mask = torch.zeros(later.shape).to(hidden).masked_fill(later, lowest)
    if hasattr(layer, "_split_heads"):  # Falcon, whose eager attention adds what it is given
        if layer.config._attn_implementation == "sdpa":
            return {"alibi": bias, "attention_mask": (mask + bias).clamp(min=lowest)}
        return {"alibi": bias / layer.inv_norm_factor, "attention_mask": mask}
    return {"residual": torch.zeros_like(hidden), "alibi": bias, "attention_mask": mask}
