"""A loaded model in the other pairing: weights permuted, its rotation changed, both measured."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from posenc.interop.changes import Undoable
from posenc.interop.configurations import read
from posenc.interop.modes import in_evaluation
from posenc.interop.oracle.watching import watched
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.rotary_config import read_layers_of
from posenc.interop.weights.checkpoint import MARK, PLACE, RowOrders, row_orders
from posenc.interop.weights.measuring import (
    Attention,
    Functions,
    calls_others,
    measured,
    with_functions,
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
    known = read(model.config)
    code = pairing_of_code(known)
    before = checked_pairing(known.values.get(MARK) or code)
    if checked_pairing(to) == before:
        check_turned(model)
        return ConvertedPairing(model, to, {}, before)
    orders = _turned(model, to)
    with torch.no_grad():
        for name, order in orders.items():
            weight = model.get_parameter(name)
            weight.copy_(order.converted(weight, to))
    config: Any = model.config.get_text_config()  # type: ignore[union-attr]
    if to == code:
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
    to = read(model.config).values.get(MARK)
    if to is None:
        raise ValueError(f"The configuration has no {MARK}; use convert_pairing.")
    if not any(map(calls_others, model.modules())):
        _turned(model, checked_pairing(to))
    return model


def check_turned(model: nn.Module) -> None:
    """Refuse converted weights whose model rotates by its own code."""
    if any(map(calls_others, model.modules())):
        return
    for part in model.modules():
        config: Any = getattr(part, "config", None)
        marked = getattr(config, MARK, None)
        if marked is not None and marked != pairing_of_code(read(config)):
            raise ValueError(
                f"The weights of {type(part).__name__} have the pairing {marked!r} and its code "
                f"has the other one. Call rotate_as_converted(model) first."
            )


def _turned(model: nn.Module, to: Pairing) -> RowOrders:
    """Change the rotation of every layer to ``to``, or back to its own; and the rows for it."""
    known = read(model.config)
    # Without duplicates: a projection that two layers share is permuted once.
    orders = row_orders(model.config, {name: x.shape for name, x in model.named_parameters()})
    own = replace(known, values={k: v for k, v in known.values.items() if k != MARK})
    layers = read_layers_of(own, None)
    found: dict[str, Attention] = {}
    for name, order in orders.items():
        place: Any = PLACE.match(name)
        path, rotary = place["attention"], layers[int(place["layer"])].rotary  # type: ignore[union-attr]
        each = found.setdefault(path, Attention(path, model.get_submodule(path), rotary, {}))
        each.orders[name.removeprefix(f"{path}.")] = order
        if not model.get_parameter(name).is_floating_point():
            raise ValueError(f"{name} is no floating parameter; quantized models are not served.")
        if "forward" in vars(each.module) and not calls_others(each.module):
            raise ValueError(f"{path} has a forward pass of its own, set on it; remove that first.")
    if to == pairing_of_code(known):
        for each in found.values():
            vars(each.module).pop("forward", None)
        return orders
    for module, functions in _measured(model, list(found.values()), to):
        with_functions(module, functions)
    return orders


def _measured(
    model: nn.Module, found: list[Attention], to: Pairing
) -> list[tuple[nn.Module, Functions]]:
    """For each module, the functions that it must call; measured once for modules of a kind."""
    kinds = {each.path: (repr(each.module), repr(each.layer)) for each in found}
    functions: dict[tuple[str, str], Functions] = {}
    path = type(model).__name__
    try:
        with in_evaluation(model):
            record = watched(model)
        for each in found:
            path, kind = each.path, kinds[each.path]
            functions[kind] = functions.get(kind) or measured(each, record, to)
    except Exception as error:  # whatever a model raises
        raise ValueError(f"{path} cannot be converted: {type(error).__name__}: {error}") from error
    return [(each.module, functions[kinds[each.path]]) for each in found]
