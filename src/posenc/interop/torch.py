"""From ``torch.nn.TransformerEncoder`` to an encoder that takes any positional encoding.

Rotary under the signatures of torch, torchtune and torchtitan is imported from
``rotary_signatures``.
"""

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

PARTS: dict[str, tuple[type[nn.Module], ...]] = {
    "self_attn": (nn.MultiheadAttention,),
    "self_attn.out_proj": (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear),
    **dict.fromkeys(("linear1", "linear2"), (nn.Linear,)),
    **dict.fromkeys(("norm1", "norm2"), (nn.LayerNorm,)),
}
"""The parts of torch's layer that have weights, and what each may be."""


def encoder_from_torch(
    module: nn.TransformerEncoder, *, positional: Positional | None = None, is_causal: bool = False
) -> Encoder:
    """An ``Encoder`` with the weights of a ``torch.nn.TransformerEncoder``.

    Without encodings it computes what the module computes. (In evaluation without gradients torch's
    fast path computes the exact GELU for ``nn.GELU(approximate="tanh")``, about 1e-4 apart.) Three
    things differ: masks are true where a token is *real* (``padding_mask=~src_key_padding_mask``),
    causality belongs to the encoder, and x is always ``[batch, seq, dim]``. Each weight is a copy
    that learns if the module's does, in its dtype; layers that share theirs share them here; and γ
    and β that a norm was built without are here, and do not learn. Forward hooks stay behind.

    Args:
        module: Any depth; pre- or post-norm, with a final norm or without.
        positional: Encodings to put in; none if not given.
        is_causal: Whether a token sees only itself and the tokens before it.

    Raises:
        TypeError: The module, its layers or their parts are of other classes.
        ValueError: Its layers are not all of one make, or their attention adds keys of its own.

    Example:
        >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=64, batch_first=True)
        >>> encoder = encoder_from_torch(nn.TransformerEncoder(layer, num_layers=2))
        >>> encoder.dim, encoder.heads, encoder.depth
        (16, 4, 2)
    """
    if type(module) is not nn.TransformerEncoder:
        raise TypeError(f"module is a {type(module).__name__}, not a torch.nn.TransformerEncoder.")
    layers = [_checked(layer) for layer in module.layers]
    makes = {_make(layer) for layer in layers}
    first = layers[0]
    if module.norm is not None:
        _check_class("norm", module.norm, (nn.LayerNorm,))
        makes.add((*_make(first)[:-1], module.norm.eps))
    if len(makes) > 1:
        raise ValueError(f"The layers (or their norms) are of {len(makes)} makes, and not of one.")
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
    take_over(encoder.blocks, _weights_of_blocks(layers))
    if encoder.final_norm is not None:
        take_over(encoder.final_norm, _filled(module.norm, first))  # type: ignore[arg-type]
    return encoder.train(module.training)


def _checked(layer: nn.Module) -> nn.TransformerEncoderLayer:
    """A layer of which its weights and numbers tell all."""
    _check_class("A layer", layer, (nn.TransformerEncoderLayer,))
    assert isinstance(layer, nn.TransformerEncoderLayer)
    for name, kinds in PARTS.items():
        _check_class(f"{name} of a layer", layer.get_submodule(name), kinds)
    attention = layer.self_attn
    if attention.add_zero_attn or attention.bias_k is not None or attention.bias_v is not None:
        raise ValueError("self_attn adds keys of its own, which an Encoder has not.")
    modules = layer.dropout, layer.dropout1, layer.dropout2
    dropouts = *map(_dropout, modules), attention.dropout
    for what, numbers in (("eps", (layer.norm1.eps, layer.norm2.eps)), ("dropout", dropouts)):
        if len(set(numbers)) > 1:
            raise ValueError(f"The {what} of a layer are {numbers}; an Encoder has one for all.")
    return layer


def _check_class(what: str, part: nn.Module, kinds: tuple[type[nn.Module], ...]) -> None:
    """Refuse a class of one's own, which may compute something else."""
    if type(part) not in kinds:
        raise TypeError(f"{what} is a {type(part).__name__}, not a {kinds[0].__name__}.")


def _dropout(module: nn.Module) -> float:
    """Its share; an identity in its place drops nothing."""
    return 0.0 if isinstance(module, nn.Identity) else module.p  # type: ignore[return-value]


def _make(layer: nn.TransformerEncoderLayer) -> tuple[object, ...]:
    """What all layers must share."""
    attention = layer.self_attn
    activation = layer.activation
    activation = repr(activation) if isinstance(activation, nn.Module) else activation
    return (
        attention.embed_dim,
        attention.num_heads,
        attention.batch_first,
        layer.linear1.out_features,
        layer.norm_first,
        _dropout(layer.dropout),
        layer.linear1.bias is not None,
        activation,
        layer.norm1.eps,
    )


def _weights_of_blocks(layers: list[nn.TransformerEncoderLayer]) -> dict[str, Taken]:
    """Where each parameter of a list of ``Block`` comes from."""
    return {
        f"{index}.{name}": taken
        for index, layer in enumerate(layers)
        for name, taken in _weights(layer).items()
    }


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
