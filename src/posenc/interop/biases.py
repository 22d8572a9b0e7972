"""ALiBi and T5's biases of loaded ``transformers`` models, by ours and without their matrices."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.scores import ALiBi, T5Bias
from posenc.interop import alibi_models
from posenc.interop.attention import ToldBias, register_attention
from posenc.interop.changes import Changes, Undoable, in_evaluation, undo_kept
from posenc.interop.oracle import inputs_of
from posenc.interop.told_mask import NAME

T5_LAYERS = frozenset(
    f"{name}Attention" for name in ("MT5", "Pop2Piano", "SwitchTransformers", "T5", "UMT5")
)

HELD = "posenc_biases"
"""Where a patched model keeps its changes."""


@dataclass(eq=False)
class BiasPatch(Undoable):
    """What ``patch_biases`` did, and how to undo it; as a context manager it undoes itself."""

    model: nn.Module
    #: The encodings, one for each that the model has of its own.
    biases: list[ALiBi | T5Bias]
    #: How far the model's own bias lies from ours at most, in the rows it was compared in: 0 for
    #: T5; for ALiBi what the model's rounding of slope × position costs it.
    own_error: float

    def undo(self) -> None:
        """Put everything back."""
        unpatch_biases(self.model)


def patch_biases(model: nn.Module) -> BiasPatch:
    """Let a loaded model with ALiBi or T5's biases attend by ``posenc.attention``, in place.

    A long prompt needs no memory of size queries × keys. ALiBi is exact, and rounded once. T5's
    table stays the model's own parameter, and receives its gradients. Caches, padding, generation,
    training, casts, copies and saving work as before; the state dict stays as it is.

    The model's own bias is compared with ours first, in a row of 5000 tokens. A model with ALiBi is
    run over a few tokens in both ways.

    Args:
        model: Bloom, MPT or Falcon (with ``alibi=True``), T5, mT5, UMT5, Switch Transformers or
            Pop2Piano, with a head or without.

    Raises:
        TypeError: The model has no such bias, or one that is made otherwise.
        ValueError: It is patched already, or its own bias or outputs are something else than ours.

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
    t5 = [layer for layer in model.modules() if type(layer).__name__ in T5_LAYERS]
    alibi = [layer for layer in model.modules() if type(layer).__name__ in alibi_models.FAMILIES]
    layers = {*t5, *alibi}
    held = any(HELD in vars(module) for module in model.modules())
    if held or any(vars(layer).keys() & {"forward", "compute_bias"} for layer in layers):
        raise ValueError(f"{type(model).__name__}, or a part of it, is patched already.")
    if not layers:
        raise TypeError(f"{type(model).__name__} has no layers with ALiBi or T5's biases to patch.")
    register_attention()
    changes, own_error = _Changes(), 0.0
    before = _outputs(model) if alibi else torch.empty(0)
    try:
        biases: list[ALiBi | T5Bias] = [bias for layer in t5 if (bias := _take_t5(layer, changes))]
        if alibi:
            bias, own_error = alibi_models.take(model, alibi, changes)
            biases.append(bias)
        for part in model.modules():
            config = getattr(part, "config", None)
            told = getattr(config, "_attn_implementation_internal", NAME) == NAME
            if not told and layers & {*part.modules()}:
                changes.set(config, "_attn_implementation_internal", NAME)
        if alibi:
            alibi_models.check_outputs(alibi[0], before, _outputs(model))
    except Exception:
        changes.undo()
        raise
    vars(model)[HELD] = changes
    return BiasPatch(model, biases, own_error)


@torch.no_grad()
def _outputs(model: nn.Module) -> Tensor:
    """What a model makes of a few tokens."""
    given, _ = inputs_of(model)
    given["attention_mask"][:, 0] = 0  # without padding, MPT that sees later keys gets no mask
    with in_evaluation(model):
        out = model(**given)[0]
    return out[:, 1:] if out.ndim > 2 else out


def unpatch_biases(model: nn.Module) -> None:
    """Let a model form its own biases again; it is what it was."""
    undo_kept(model, HELD)


class _Changes(Changes):
    """Changes of a model that attends by ours, in whatever process it was loaded."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        register_attention()


def _take_t5(layer: Any, changes: Changes) -> T5Bias | None:
    """Say what the layer adds to scores, and draw nothing; its bias, if it has one of its own."""
    if not layer.has_relative_attention_bias:
        # Of another layer, handed on, or none: then it would draw zeros.
        changes.set(layer, "has_relative_attention_bias", True)
        changes.set(layer, "compute_bias", partial(_told_t5, layer, None))
        return None
    bias = T5Bias(
        layer.n_heads,
        layer.relative_attention_num_buckets,
        layer.relative_attention_max_distance,
        bidirectional=not layer.is_decoder,
    )
    _check_buckets(layer, bias)
    changes.set(layer, "compute_bias", partial(_told_t5, layer, bias))
    return bias


def _told_t5(
    layer: Any, bias: T5Bias | None, *_: Any, past_seen_tokens: int | Tensor = 0, **__: Any
) -> ToldBias:
    """The bias with the table that the layer has now, whatever was loaded or cast meanwhile."""
    if bias is None:
        return ToldBias(None)
    own = layer.relative_attention_bias
    rows: Any = getattr(own, "weight", None)
    if not isinstance(own, nn.Embedding) or type(own).forward is not nn.Embedding.forward:
        # An adapter may add to what is looked up, so it is asked for every row.
        rows = own(torch.arange(bias.buckets, device=next(own.parameters()).device))
    bias._parameters["weight"] = rows
    return ToldBias(bias, first=past_seen_tokens)


@torch.no_grad()
def _check_buckets(layer: Any, bias: T5Bias) -> None:
    """Compare the layer's own buckets with ours, by a table of which no two numbers are equal."""
    own = layer.relative_attention_bias
    table = torch.arange(own.weight.numel(), dtype=torch.float32).view_as(own.weight)
    layer._modules["relative_attention_bias"] = nn.Embedding.from_pretrained(table)
    bias._parameters["weight"] = nn.Parameter(table)
    last, keys = alibi_models.LENGTH - 1, torch.arange(2 * alibi_models.LENGTH - 1)
    theirs = layer.compute_bias(1, len(keys), torch.device("cpu"), past_seen_tokens=last)
    layer._modules["relative_attention_bias"] = own
    if not torch.equal(theirs[0, :, 0], bias.profile(last - keys)):
        raise ValueError(f"{type(layer).__name__} has other buckets than {bias}.")
    bias._parameters["weight"] = own.weight
