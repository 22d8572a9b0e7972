"""ALiBi and T5's biases of loaded ``transformers`` models, by ours and without their matrices."""

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.scores import ALiBi, T5Bias
from posenc.guards import hooked
from posenc.interop import alibi_layers
from posenc.interop.attention import ToldBias, register_attention
from posenc.interop.modes import in_evaluation
from posenc.interop.told_mask import NAME, ToldMask
from posenc.numerics import slopes

LENGTHS = 16, 128, 1000, 5000
"""Of rows at which a model's own bias is held against ours."""
PROBED = 5, 40
"""Lengths of random rows that run through a layer before and after."""

T5_LAYERS = frozenset(
    {
        "MT5Attention",
        "Pop2PianoAttention",
        "SwitchTransformersAttention",
        "T5Attention",
        "UMT5Attention",
    }
)
ALIBI_LAYERS = frozenset({"BloomAttention", "FalconAttention", "MptAttention"})
REFUSED = {
    "LongT5LocalAttention": "it attends in blocks, with a bias of its own making for each block",
    "LongT5TransientGlobalAttention": "it attends in blocks, and to a summary of each block",
    "UdopAttention": "its bias depends on the place on the page too",
    "FalconFlashAttention2": "it was loaded for flash attention, which knows no ALiBi",
}
"""Layers with such a bias that are not taken over, and why."""


@dataclass(eq=False)
class BiasPatch:
    """What ``patch_biases`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        model: The model.
        biases: The encodings, one for each that the model has of its own.
        own_error: How far the model's own bias lies from ours at most, in the rows it was held
            against: 0 for T5; for ALiBi what the model's rounding of slope × position costs it.
    """

    model: nn.Module
    biases: list[ALiBi | T5Bias] = field(default_factory=list)
    own_error: float = 0.0

    def undo(self) -> None:
        """Put everything back."""
        unpatch_biases(self.model)

    def __enter__(self) -> "BiasPatch":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def patch_biases(model: nn.Module) -> BiasPatch:
    """Let a loaded model with ALiBi or T5's biases attend by ``posenc.attention``, in place.

    The bias becomes one number a distance, read from there where scores are formed; so a long
    prompt is faster by a factor, and needs no memory of size queries × keys. ALiBi is exact, and
    rounded once. T5's table stays the model's own parameter, and receives its gradients. Caches,
    left padding, generation, training, casts, copies and saving go on as before; the state dict
    stays as it is.

    It admits by measuring: the model's own bias is held against ours in rows of 16 to 5000 tokens,
    and ALiBi's layers run on random rows before and after, before anything is changed.

    Args:
        model: Bloom, MPT or Falcon (with ``alibi=True``), T5, mT5, UMT5, Switch Transformers or
            Pop2Piano, with a head or without.

    Raises:
        TypeError: The model has no such bias, or one that is made otherwise.
        ValueError: It is patched already, its own bias or its layers give something else than
            ours (as Falcon's with ``attn_implementation="eager"``, where transformers adds ALiBi
            twice), or its weights are not there.

    Reference:
        Press, Smith & Lewis 2022, "Train Short, Test Long" (arXiv:2108.12409); Raffel et al. 2020,
        "Exploring the Limits of Transfer Learning", section 2.1 (arXiv:1910.10683).

    Example:
        >>> from transformers import BloomConfig, BloomForCausalLM
        >>> config = BloomConfig(vocab_size=99, hidden_size=32, n_layer=1, n_head=4)
        >>> model, ids = BloomForCausalLM(config).eval(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> with patch_biases(model) as patched:
        ...     after = model(ids).logits
        >>> patched.biases, torch.allclose(after, before, atol=1e-5)
        ([ALiBi(heads=4)], True)
    """
    layers = [layer for layer in model.modules() if type(layer).__name__ in T5_LAYERS]
    alibi = [layer for layer in model.modules() if type(layer).__name__ in ALIBI_LAYERS]
    _refuse_patched(model, layers + alibi)
    _refuse(model, layers + alibi)
    register_attention()
    made, changes = BiasPatch(model), _Changes()
    for layer in layers:
        _t5(layer, made, changes)
    if alibi:
        _alibi(model, alibi, made, changes)
    for config in _configurations(model, {*layers, *alibi}):
        changes.add(config, "_attn_implementation_internal", NAME)
    # All is measured before anything is changed, so that an error leaves the model as it was.
    changes.make()
    model.__dict__["posenc_biases"] = changes
    return made


def unpatch_biases(model: nn.Module) -> None:
    """Let a model form its own biases again; it is what it was.

    Raises:
        ValueError: The model is not patched.
    """
    changes = model.__dict__.pop("posenc_biases", None)
    if changes is None:
        raise ValueError("The biases of the model are not patched; there is nothing to undo.")
    changes.undo()


ABSENT = "nothing of its own"


@dataclass(eq=False)
class _Changes:
    """Attributes of objects, what they are to be, and what they were.

    They stand in the object's own dictionary, past a module's bookkeeping: nothing is added to a
    state dict, and copies and pickles take them along.
    """

    wanted: list[tuple[Any, str, Any]] = field(default_factory=list)
    before: list[tuple[Any, str, Any]] = field(default_factory=list)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        register_attention()  # another process may have loaded the model, and knows no such name

    def add(self, holder: Any, name: str, value: Any) -> None:
        self.wanted.append((holder, name, value))

    def make(self) -> None:
        for holder, name, value in self.wanted:
            self.before.append((holder, name, holder.__dict__.get(name, ABSENT)))
            holder.__dict__[name] = value
        self.wanted = []

    def undo(self) -> None:
        for holder, name, value in reversed(self.before):
            if isinstance(value, str) and value == ABSENT:
                del holder.__dict__[name]
            else:
                holder.__dict__[name] = value


def _refuse_patched(model: nn.Module, layers: list[nn.Module]) -> None:
    """Refuse what is patched already, a part of it, or what it is a part of.

    Raises:
        ValueError: It is.
    """
    holders = [path for path, module in model.named_modules() if "posenc_biases" in vars(module)]
    if "" in holders:
        raise ValueError("The model is patched already. Undo that first, with unpatch_biases.")
    if holders:
        raise ValueError(
            f"A part of the model is patched already: {', '.join(holders)}. Undo that first, with "
            f"unpatch_biases of that part."
        )
    if any(vars(layer).keys() & {"forward", "compute_bias"} for layer in layers):
        raise ValueError(
            f"The layers of {type(model).__name__} have a forward pass or a bias that is not of "
            f"their class: the model that it is a part of is patched already, or other code put "
            f"its own there. Undo that first."
        )


def _refuse(model: nn.Module, layers: list[nn.Module]) -> None:
    for layer in model.modules():
        if reason := REFUSED.get(type(layer).__name__):
            raise TypeError(
                f"{type(model).__name__} has layers of type {type(layer).__name__}, which are not "
                f"taken over: {reason}."
            )
    if not layers:
        raise TypeError(
            f"{type(model).__name__} has no layers with ALiBi or T5's biases that are known here. "
            f"They are {', '.join(sorted(T5_LAYERS | ALIBI_LAYERS))}. For rotary models there is "
            f"patch, and attn_implementation='posenc' for all that goes through the interface."
        )
    if any(_adds_twice(layer) for layer in layers):
        raise ValueError(
            "attn_implementation is 'eager', with which transformers adds Falcon's ALiBi twice: it "
            "is in the mask already. Load the model with attn_implementation='sdpa', which adds it "
            "once, as it was trained."
        )
    if any(parameter.is_meta for layer in layers for parameter in layer.parameters()):
        raise ValueError(
            "The weights of the model are on the meta device, so nothing can be measured. Load "
            "them first."
        )


def _adds_twice(layer: nn.Module) -> bool:
    implementation = getattr(getattr(layer, "config", None), "_attn_implementation", None)
    return type(layer).__name__ == "FalconAttention" and implementation == "eager"


def _configurations(model: nn.Module, layers: set[nn.Module]) -> Iterator[Any]:
    """The configurations that these layers and the modules around them look at, each once."""
    found = {}
    for module in model.modules():
        config = module.__dict__.get("config")
        if hasattr(config, "_attn_implementation_internal") and layers & {*module.modules()}:
            found[id(config)] = config
    yield from found.values()


# T5 -----------------------------------------------------------------------------------------------


def _t5(layer: Any, made: BiasPatch, changes: _Changes) -> None:
    """Say what the layer adds to scores, and draw nothing."""
    if not layer.has_relative_attention_bias:
        # Of another layer, handed on, or none: then it would draw zeros.
        changes.add(layer, "has_relative_attention_bias", True)
        changes.add(layer, "compute_bias", _NoBias())
        return
    bias = T5Bias(
        layer.n_heads,
        layer.relative_attention_num_buckets,
        layer.relative_attention_max_distance,
        bidirectional=not layer.is_decoder,
    )
    _check_buckets(layer, bias)
    made.biases.append(bias)
    changes.add(layer, "compute_bias", partial(_told_t5, layer, bias))


class _NoBias:
    """Says that nothing is added."""

    def __call__(self, *_: Any, **__: Any) -> ToldBias:
        return ToldBias(None)


def _told_t5(
    layer: Any, bias: T5Bias, *_: Any, past_seen_tokens: int | Tensor = 0, **__: Any
) -> ToldBias:
    """The bias with the table that the layer has now, whatever was loaded or cast meanwhile."""
    own = layer.relative_attention_bias
    if (
        isinstance(own, nn.Embedding)
        and type(own).forward is nn.Embedding.forward
        and not hooked(own)
    ):
        bias._parameters["weight"] = own.weight  # type: ignore[arg-type]
    else:  # an adapter may add to what is looked up, so it is asked for every row
        device = next(own.parameters()).device
        rows = own(torch.arange(bias.buckets, device=device))
        bias._parameters["weight"] = rows  # type: ignore[arg-type]
    return ToldBias(bias, first=past_seen_tokens)


@torch.no_grad()
def _check_buckets(layer: Any, bias: T5Bias) -> None:
    """Hold the layer's own buckets against ours, with a table of which no two numbers are equal.

    Raises:
        ValueError: They differ.
    """
    own = layer.relative_attention_bias
    table = torch.arange(own.weight.numel(), dtype=torch.float32).view_as(own.weight)
    layer._modules["relative_attention_bias"] = nn.Embedding.from_pretrained(table)
    bias._parameters["weight"] = nn.Parameter(table)
    try:
        for length in LENGTHS:
            device = torch.device("cpu")
            theirs = layer.compute_bias(1, 2 * length - 1, device, past_seen_tokens=length - 1)
            distance = length - 1 - torch.arange(2 * length - 1)
            wrong = (theirs[0, :, 0] != bias.profile(distance)).any(0)
            if wrong.any():
                raise ValueError(
                    f"{type(layer).__name__} has another bucket than {bias} at a distance of "
                    f"{int(distance[wrong][0])}. It keeps its own bias."
                )
    finally:
        layer._modules["relative_attention_bias"] = own
    bias._parameters["weight"] = own.weight


# ALiBi --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Family:
    """One model's way to ALiBi.

    Attributes:
        forward: What stands for the forward pass of a layer.
        bias: (layer, length) → ``[heads, length]``: what the last query adds for each key, up to a
            number of its own for each head.
        rounding: Of the numbers in it, over the largest of a head. Falcon rounds slope, position
            and product to bfloat16, here and for the last key: 6 · 2⁻⁹ at most.
        counts_padding: Whether distances count the padding between two tokens.
        rounding_by_head: What is added to that for each head, where slopes are powers of a
            rounded base: the power of it doubles with the number of heads, and so does what its
            rounding costs.
    """

    forward: Callable[..., Any]
    bias: Callable[[Any, int], Tensor]
    rounding: float
    counts_padding: bool
    rounding_by_head: float = 0.0


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
    "BloomAttention": _Family(
        alibi_layers.bloom, _bloom_bias, 2.0**-22, counts_padding=False, rounding_by_head=2.0**-23
    ),
    "FalconAttention": _Family(alibi_layers.falcon, _falcon_bias, 2.0**-6, counts_padding=False),
    "MptAttention": _Family(alibi_layers.mpt, _mpt_bias, 2.0**-22, counts_padding=True),
}


def _alibi(model: nn.Module, layers: list[Any], made: BiasPatch, changes: _Changes) -> None:
    kind = type(layers[0]).__name__
    family, first = FAMILIES[kind], layers[0]
    if kind == "FalconAttention" and not first.config.alibi:
        raise TypeError("This Falcon rotates and has no ALiBi. For rotary models there is patch.")
    if kind == "BloomAttention" and first.pretraining_tp > 1 and first.slow_but_exact:
        raise ValueError(
            f"The model sums its projection in {first.pretraining_tp} slices (slow_but_exact), "
            f"without its bias. Set slow_but_exact=False in its configuration."
        )
    bias = _exact(first, kind)
    made.own_error = _check_slopes(first, family, bias)
    made.biases.append(bias)
    told = ToldBias(bias, counts_padding=family.counts_padding)
    _check_layer(first, partial(family.forward, first, told), family)
    for layer in layers:
        changes.add(layer, "forward", partial(family.forward, layer, told))
    for module in model.modules():
        if kind == "FalconAttention" and "use_alibi" in module.__dict__:
            changes.add(module, "use_alibi", False)  # it would add it to the mask besides
        if kind == "MptAttention" and getattr(module, "attn", None) in layers:
            changes.add(module, "forward", partial(alibi_layers.without_weights, module))


def _exact(layer: Any, kind: str) -> ALiBi:
    if kind == "MptAttention":
        return ALiBi(layer.n_heads)
    heads = layer.num_heads
    if kind == "BloomAttention":
        return ALiBi(heads)
    # Falcon scales products and biases alike.
    return ALiBi(heads, slopes=[m / math.sqrt(layer.head_dim) for m in slopes.alibi(heads)])


def _check_slopes(layer: Any, family: _Family, bias: ALiBi) -> float:
    """Hold the model's own bias against ours; how far they lie apart at most.

    Raises:
        ValueError: By more than its rounding.
    """
    most = 0.0
    for length in LENGTHS:
        own = family.bias(layer, length).cpu().double()
        ours = bias.profile(length - 1 - torch.arange(length), dtype=torch.float64)
        apart = (own - own[:, -1:] - ours).abs()
        rounding = family.rounding + family.rounding_by_head * len(own)
        bound = rounding * own.abs().amax(1, keepdim=True)
        if (apart > bound).any():
            raise ValueError(
                f"{type(layer).__name__} adds something else than {bias}: {float(apart.max()):.3g} "
                f"apart in a row of {length} tokens. It keeps its own bias."
            )
        most = max(most, float(apart.max()))
    return most


@torch.no_grad()
def _check_layer(layer: Any, ours: Callable[..., Any], family: _Family) -> None:
    """Run a layer on random rows, by its own forward pass and by ours.

    Raises:
        ValueError: They differ by more than rounding.
    """
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
                raise ValueError(
                    f"{type(layer).__name__} gives something else with our bias: {apart:.3g} of "
                    f"its size apart on {length} random tokens. It keeps its own."
                )


def _probe(layer: Any, family: _Family, hidden: Tensor, length: int) -> dict[str, Any]:
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
