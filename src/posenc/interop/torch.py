"""Doors to torch's own modules, and rotary under the signatures of its family.

From ``torch.nn.TransformerEncoder`` to an encoder that takes any positional encoding; the function
proposed for torch, and the modules of torchtune and torchtitan, from ``rotary_signatures``.
"""

from torch import nn

from posenc.encodings.positional import Positional
from posenc.guards import hooked, overridden
from posenc.interop.rotary_signatures import (
    ComplexRoPE,
    CosSinRoPE,
    RotaryPositionalEmbeddings,
    rotary_embedding,
)
from posenc.interop.taken_over import Taken, mode_of, take_over
from posenc.transformer import Encoder

__all__ = [
    "ComplexRoPE",
    "CosSinRoPE",
    "RotaryPositionalEmbeddings",
    "encoder_from_torch",
    "rotary_embedding",
]

PARTS = {
    "self_attn": (nn.MultiheadAttention,),
    "self_attn.out_proj": (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear),
    **dict.fromkeys(("linear1", "linear2"), (nn.Linear,)),
    **dict.fromkeys(("norm1", "norm2"), (nn.LayerNorm,)),
    **dict.fromkeys(("dropout", "dropout1", "dropout2"), (nn.Dropout, nn.Identity)),
}
"""The parts of torch's layer, and what each may be; of dropouts, classes derived from these too."""

NAMING = frozenset({
    "__annotate_func__", "__annotations__", "__annotations_cache__", "__constants__", "__dict__",
    "__doc__", "__firstlineno__", "__init__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__slotnames__", "__static_attributes__", "__weakref__", "extra_repr",
})  # fmt: skip
"""What a class may say that computes what the one does that it is derived from."""


def encoder_from_torch(
    module: nn.TransformerEncoder, *, positional: Positional | None = None, is_causal: bool = False
) -> Encoder:
    """An ``Encoder`` with the weights of a ``torch.nn.TransformerEncoder``.

    Without encodings it computes what the module computes; but torch's fast path, in evaluation and
    without gradients, computes the exact GELU for ``nn.GELU(approximate="tanh")`` too, about 1e-4
    from what the module and this encoder compute otherwise. Mind three differences: masks are true
    where a token is *real* (``padding_mask=~src_key_padding_mask``), causality belongs to the
    encoder, and x is always ``[batch, seq, dim]``, whatever the module's ``batch_first``. Each
    weight is a copy that learns if the module's does, in its dtype; layers that share theirs share
    them here; and γ and β that a norm was built without are here, and do not learn.

    Args:
        module: Any depth; pre- or post-norm, with a final norm or without.
        positional: Encodings to put in; none if not given.
        is_causal: Whether a token sees only itself and the tokens before it.

    Raises:
        TypeError: The module, its layers or their parts are of other classes.
        ValueError: Its layers are not all of one make, their attention adds keys of its own, they
            have hooks, or some parts train and others do not.

    Example:
        >>> layer = nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=64, batch_first=True)
        >>> encoder = encoder_from_torch(nn.TransformerEncoder(layer, num_layers=2))
        >>> encoder.dim, encoder.heads, encoder.depth
        (16, 4, 2)
    """
    if type(module) is not nn.TransformerEncoder:
        raise TypeError(
            f"module is a {type(module).__name__}; it must be a torch.nn.TransformerEncoder, since "
            f"a class of one's own may compute something else. Wrap a single layer: "
            f"TransformerEncoder(layer, num_layers=1)."
        )
    for part in (module, module.layers, module.norm):
        if part is not None:
            _check_calls("The module", part)
    layers = [_checked(layer) for layer in module.layers]
    first = layers[0]
    if module.norm is not None and type(module.norm) is not nn.LayerNorm:
        raise TypeError(
            f"norm is a {type(module.norm).__name__}; only torch.nn.LayerNorm can be taken over, "
            f"since a class of one's own may compute something else."
        )
    for layer in layers:
        _check_one_number(layer)
    mode = mode_of(module)
    makes = {_make(layer) for layer in layers}
    if module.norm is not None:
        makes.add((*_make(first)[:-1], module.norm.eps))
    if len(makes) > 1:
        raise ValueError(
            f"The layers (or their norms) are of {len(makes)} makes; an Encoder has one for all. "
            f"Build the module from a single TransformerEncoderLayer."
        )
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
    return encoder.train(mode)


def _checked(layer: nn.Module) -> nn.TransformerEncoderLayer:
    if type(layer) is not nn.TransformerEncoderLayer:
        raise TypeError(
            f"A layer is a {type(layer).__name__}; only torch.nn.TransformerEncoderLayer can be "
            f"taken over, since a class of one's own may compute something else."
        )
    _check_parts(layer)
    return layer


def _check_parts(layer: nn.TransformerEncoderLayer) -> None:
    """Refuse a layer in which something was put that its weights do not tell."""
    for name, kinds in PARTS.items():
        part = layer.get_submodule(name)
        if type(part) not in kinds and not _drops_as(part, kinds):
            raise TypeError(
                f"{name} of a layer is a {type(part).__name__}; only {kinds[0].__name__} can be "
                f"taken over."
            )
    attention = layer.self_attn
    if attention.add_zero_attn or attention.bias_k is not None or attention.bias_v is not None:
        raise ValueError(
            "self_attn of a layer adds keys of its own (add_zero_attn, add_bias_kv), which an "
            "Encoder has not. Build it without."
        )
    for part in layer.modules():
        _check_calls("A layer", part)


def _drops_as(part: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    """Whether a part is a dropout, or none, by another name: its classes say nothing else."""
    classes = type(part).__mro__
    return nn.Dropout in kinds and any(
        each in classes and all(vars(kind).keys() <= NAMING for kind in {*classes} - {*each.mro()})
        for each in kinds
    )


def _check_calls(what: str, part: nn.Module) -> None:
    """Refuse a part whose calls do something else than its class says."""
    if names := overridden(part):
        raise ValueError(
            f"{what} has a {type(part).__name__} with a method {names[0]} of its own, set on it "
            f"and not of its class; an Encoder takes weights alone. Remove it first."
        )
    if hooked(part):
        raise ValueError(
            f"{what} has forward hooks, which see and may change what it computes; an Encoder "
            f"takes weights alone. Remove them first."
        )


def _check_one_number(layer: nn.TransformerEncoderLayer) -> None:
    """Refuse a layer whose norms or dropouts differ, of which a ``Block`` has one number."""
    modules = layer.dropout, layer.dropout1, layer.dropout2
    dropouts = *map(_dropout, modules), layer.self_attn.dropout
    for what, numbers in (("eps", (layer.norm1.eps, layer.norm2.eps)), ("dropout", dropouts)):
        if len(set(numbers)) > 1:
            raise ValueError(
                f"The {what} of a layer are {numbers}; an Encoder has one for all. Set them alike."
            )


def _dropout(module: nn.Module) -> float:
    """Its share; an identity in its place drops nothing."""
    return module.p if isinstance(module, nn.Dropout) else 0.0


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
