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

    Args:
        module: Any depth; pre- or post-norm, with a final norm or without.
        positional: Encodings to put in; none if not given.
        is_causal: Whether a token sees only itself and the tokens before it.

    Example:
        >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=64, batch_first=True)
        >>> encoder = encoder_from_torch(nn.TransformerEncoder(layer, num_layers=2))
        >>> encoder.dim, encoder.heads, encoder.depth
        (16, 4, 2)
    """
    if type(module) is not nn.TransformerEncoder:
        raise TypeError(f"module is a {type(module).__name__}, not a torch.nn.TransformerEncoder.")
    layers: list[Any] = list(module.layers)
    _check_alike(layers, module.norm)
    first = layers[0]
    attention = first.self_attn
    encoder = Encoder(
        attention.embed_dim,
        attention.num_heads,
        len(layers),
        positional=positional,
        inner=first.linear1.out_features,
        norm="pre" if first.norm_first else "post",
        activation=first.activation,
        dropout=_dropout(first.dropout),
        is_causal=is_causal,
        final_norm=module.norm is not None,
        eps=first.norm1.eps,
        bias=first.linear1.bias is not None,
    ).to(first.linear1.weight)
    each = {f"{i}.{name}": of for i, x in enumerate(layers) for name, of in _weights(x).items()}
    take_over(encoder.blocks, each)
    if encoder.final_norm is not None:
        take_over(encoder.final_norm, _filled(module.norm, first))  # type: ignore[arg-type]
    return encoder.train(module.training)


def _check_alike(layers: list[Any], norm: nn.Module | None) -> None:
    """Refuse layers of which weights and numbers do not tell all, or that differ."""
    for layer in layers:
        if type(layer) is not nn.TransformerEncoderLayer:
            raise TypeError(f"A layer is a {type(layer).__name__}, not a TransformerEncoderLayer.")
        if layer.self_attn.add_zero_attn or layer.self_attn.bias_k is not None:
            raise ValueError("self_attn adds keys of its own, which an Encoder has not.")
    norms = [each for layer in layers for each in (layer.norm1, layer.norm2)]
    dropped = {_dropout(each) for x in layers for each in (x.dropout, x.dropout1, x.dropout2)}
    dropped |= {layer.self_attn.dropout for layer in layers}
    eps = {each.eps for each in (*norms, *([] if norm is None else [norm]))}
    if len({_make(layer) for layer in layers}) > 1 or len(eps) > 1 or len(dropped) > 1:
        raise ValueError("Layers differ in sizes, order, activation, eps or dropout.")


def _dropout(module: nn.Module) -> float:
    """Its share; an identity in its place drops nothing."""
    return 0.0 if isinstance(module, nn.Identity) else module.p  # type: ignore[return-value]


def _make(layer: nn.TransformerEncoderLayer) -> tuple[object, ...]:
    """What all layers must share."""
    attention, activation = layer.self_attn, layer.activation
    return (
        attention.embed_dim, attention.num_heads, attention.batch_first,
        layer.linear1.out_features, layer.norm_first, layer.linear1.bias is not None,
        repr(activation) if isinstance(activation, nn.Module) else activation,
    )  # fmt: skip


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
