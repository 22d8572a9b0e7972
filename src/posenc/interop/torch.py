"""From ``torch.nn.TransformerEncoder`` to an encoder that takes any positional encoding.

Rotary under the signatures of torch, torchtune and torchtitan is imported from
``rotary_signatures``.
"""

from typing import Any

from torch import nn

from posenc.encodings.positional import Positional
from posenc.interop.rotary_signatures import (
    ComplexRoPE,
    CosSinRoPE,
    RotaryPositionalEmbeddings,
    rotary_embedding,
)
from posenc.interop.taken_over import Taken, take_over
from posenc.transformer import Encoder

__all__ = [
    "ComplexRoPE",
    "CosSinRoPE",
    "RotaryPositionalEmbeddings",
    "encoder_from_torch",
    "rotary_embedding",
]


def encoder_from_torch(
    module: nn.TransformerEncoder, *, positional: Positional | None = None, is_causal: bool = False
) -> Encoder:
    """An ``Encoder`` with the weights of a ``torch.nn.TransformerEncoder``.

    Without encodings it computes what the module computes. Three things differ: masks are true
    where a token is *real* (``padding_mask=~src_key_padding_mask``), causality belongs to the
    encoder, and x is always ``[batch, seq, dim]``. Each weight is a copy that learns if the
    module's does, in its dtype; layers that share theirs share them here. Hooks stay behind.

    Example:
        >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=64, batch_first=True)
        >>> encoder = encoder_from_torch(nn.TransformerEncoder(layer, num_layers=2))
        >>> encoder.dim, encoder.heads, encoder.depth
        (16, 4, 2)
    """
    layers: list[Any] = list(module.layers)
    first, norm = layers[0], module.norm
    if {*map(type, layers)} != {nn.TransformerEncoderLayer}:
        raise TypeError("A layer of module is no plain torch.nn.TransformerEncoderLayer.")
    if len({*map(repr, layers)}) > 1:
        raise ValueError("Layers differ in sizes, eps or dropout.")
    encoder = Encoder(
        first.self_attn.embed_dim,
        first.self_attn.num_heads,
        len(layers),
        positional=positional,
        inner=first.linear1.out_features,
        norm="pre" if first.norm_first else "post",
        activation=first.activation,
        dropout=getattr(first.dropout, "p", 0.0),  # an identity in its place drops nothing
        attention_dropout=first.self_attn.dropout,
        is_causal=is_causal,
        final_norm=norm is not None,
        eps=first.norm1.eps,
        bias=first.linear1.bias is not None,
    ).to(first.linear1.weight)
    each = {f"{i}.{name}": of for i, x in enumerate(layers) for name, of in _weights(x).items()}
    take_over(encoder.blocks, each)
    if encoder.final_norm is not None:
        take_over(encoder.final_norm, _filled(norm, first))  # type: ignore[arg-type]
        encoder.final_norm.eps = norm.eps  # type: ignore[union-attr]
    return encoder.train(module.training)


def _weights(layer: nn.TransformerEncoderLayer) -> dict[str, Taken]:
    """Where each parameter of a ``Block`` comes from."""
    attention = layer.self_attn
    weights = {}
    for kind in ("weight", "bias"):
        stacked = getattr(attention, f"in_proj_{kind}")
        if stacked is not None:
            for part, name in enumerate(("queries", "keys", "values")):
                weights[f"attention.{name}.{kind}"] = Taken(stacked, part, 3)
    parts = {
        "attention.output": attention.out_proj,
        "feed_forward.expand": layer.linear1,
        "feed_forward.contract": layer.linear2,
    }
    for name, part in parts.items():
        weights |= {f"{name}.{key}": Taken(value) for key, value in part.named_parameters()}
    for name, norm in (("attention_norm", layer.norm1), ("feed_forward_norm", layer.norm2)):
        weights |= {f"{name}.{key}": taken for key, taken in _filled(norm, layer).items()}
    return weights


def _filled(norm: nn.LayerNorm, layer: nn.TransformerEncoderLayer) -> dict[str, Taken]:
    """γ and β of a norm; what it was built without is 1 and 0, and does not learn."""
    like, shape = layer.linear1.weight.detach(), norm.normalized_shape
    filled = {"weight": like.new_ones(shape), "bias": like.new_zeros(shape)}
    return {name: Taken(each) for name, each in {**filled, **dict(norm.named_parameters())}.items()}
