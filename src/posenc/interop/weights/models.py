"""A loaded model in the other pairing: weights permuted, its rotation changed, both measured."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from posenc.interop.changes import Undoable
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.rotary_config import read_layers_of
from posenc.interop.weights.checkpoint import MARK, PLACE, RowOrders, row_orders
from posenc.interop.weights.measuring import (
    Attention,
    calls_others,
    measure,
    refusal,
    with_functions,
    without_functions,
)
from posenc.numerics.pairing import Pairing, checked_pairing


@dataclass(eq=False, repr=False)
class ConvertedPairing(Undoable):
    """What ``convert_pairing`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        model: The model.
        to: The pairing that its weights have.
        orders: The tensors that were permuted.
        before: The pairing that they had.
    """

    model: nn.Module
    to: Pairing
    orders: RowOrders
    before: Pairing

    def undo(self) -> None:
        """Bring the weights back to the pairing that they had, bit for bit."""
        convert_pairing(self.model, to=self.before)
        self.to = self.before


def convert_pairing(model: nn.Module, *, to: Pairing) -> ConvertedPairing:
    """Bring the queries and keys of a whole model into the pairing ``to``, in place.

    Rows of projections change places (see ``row_orders``), and each attention module then rotates
    pairs of the other kind. Logits stay, up to the rounding of sums in another order.
    ``model.state_dict()`` is what a framework of that pairing loads, and keys in caches have it.

    Before anything is changed, attention is run in both ways in float64, on a copy with random
    weights of one layer of each kind; the model is refused if the outputs are not the same.
    ``torch.compile`` leaves the attention modules of a converted model as they are.

    The configuration notes the pairing as ``posenc_pairing``, which plain transformers does not
    read: after loading such a model, call ``rotate_as_converted``.

    Args:
        model: Of transformers, its weights loaded, not quantized.
        to: ``"half"`` or ``"interleaved"``. The pairing that it has already changes nothing.

    Raises:
        ValueError: The layout of its weights or its manner of rotating is not known, or the
            measurement failed. The model is as it was.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaForCausalLM(config).eval().double(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> with convert_pairing(model, to="interleaved"):
        ...     torch.allclose(model(ids).logits, before, atol=1e-6)
        True
    """
    checked_pairing(to)
    known = _read(model)
    before = checked_pairing(known.values.get(MARK) or pairing_of_code(known))
    if to == before:
        check_turned(model)
        return ConvertedPairing(model, to, {}, before)
    orders = _orders(model)
    parameters = dict(model.named_parameters())
    for name in orders:
        if name not in parameters or not parameters[name].is_floating_point():
            raise ValueError(f"{name} is no floating parameter; quantized models are not served.")
    _turn(model, to, orders)
    with torch.no_grad():
        for name, order in orders.items():
            parameters[name].copy_(order.converted(parameters[name], to))
    config = model.config.get_text_config()  # type: ignore[union-attr]
    if to == pairing_of_code(known):
        vars(config).pop(MARK, None)
    else:
        setattr(config, MARK, to)
    return ConvertedPairing(model, to, orders, before)


def rotate_as_converted(model: nn.Module) -> nn.Module:
    """Give a model the rotation that its weights were converted for, after loading them.

    Args:
        model: One whose configuration has ``posenc_pairing``, loaded by transformers.

    Returns:
        The model.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        ...                      posenc_pairing="interleaved")
        >>> model = rotate_as_converted(LlamaModel(config))
    """
    to = _read(model).values.get(MARK)
    if to is None:
        raise ValueError(f"The configuration has no {MARK}; use convert_pairing.")
    if any(map(calls_others, model.modules())):
        return model
    _turn(model, checked_pairing(to), _orders(model))
    return model


def check_turned(model: nn.Module) -> None:
    """Refuse converted weights whose model, or a part of it, rotates by its own code."""
    if not hasattr(getattr(model, "config", None), "get_text_config"):
        for part in model.children():
            check_turned(part)
        return
    known = _read(model)
    marked = known.values.get(MARK)
    if marked is None or checked_pairing(marked) == pairing_of_code(known):
        return
    if not any(map(calls_others, model.modules())):
        raise ValueError(
            f"The weights of {type(model).__name__} have the pairing {marked!r} and its code has "
            f"the other one. Call rotate_as_converted(model) first."
        )


def _turn(model: nn.Module, to: Pairing, orders: RowOrders) -> None:
    """Change the rotation of every layer to ``to``, or back to its own."""
    known = _read(model)
    own = replace(known, values={k: v for k, v in known.values.items() if k != MARK})
    layers = read_layers_of(own, None)
    found: dict[str, Attention] = {}
    for name, order in orders.items():
        place: Any = PLACE.match(name)
        path, layer = place["attention"], layers[int(place["layer"])]
        module, rotary = model.get_submodule(path), layer.rotary  # type: ignore[union-attr]
        each = found.setdefault(path, Attention(path, module, rotary, {}))
        each.orders[name.removeprefix(f"{path}.")] = order
    for each in found.values():
        if each.layer.rotated_dim == 2:
            raise refusal(each, "it rotates one pair, which is the same in both pairings")
        if "forward" in vars(each.module) and not calls_others(each.module):
            raise refusal(each, "it has a forward pass of its own, set on it; remove that first")
    if to == pairing_of_code(known):
        for each in found.values():
            without_functions(each.module)
        return
    for module, functions in measure(model, list(found.values()), to):
        with_functions(module, functions)


def _orders(model: nn.Module) -> RowOrders:
    # Without duplicates: a projection that two layers share is permuted once.
    shapes = {name: tuple(x.shape) for name, x in model.named_parameters()}
    return row_orders(model.config, shapes)


def _read(model: nn.Module) -> Configuration:
    config: Any = getattr(model, "config", None)
    if config is None:
        raise TypeError(f"{type(model).__name__} has no configuration; use convert_weights.")
    return read(config)
