"""A loaded model in the other pairing: weights permuted, its rotation changed, both measured."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.configurations import Configuration, read
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.rotary_config import read_layers_of
from posenc.interop.weights.checkpoint import MARK, PLACE, RowOrders, row_orders
from posenc.interop.weights.measuring import Attention, check_own_forward, measure
from posenc.interop.weights.rotations import calls_others, with_functions, without_functions
from posenc.numerics.pairing import Pairing, checked_pairing


class ConvertedPairing:
    """What ``convert_pairing`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        model: The model.
        to: The pairing that its weights have.
        orders: The tensors that were permuted.
    """

    def __init__(self, model: nn.Module, to: Pairing, orders: RowOrders, before: Pairing):
        self.model, self.orders = model, orders
        self.to: Pairing = to
        self._before: Pairing = before

    def undo(self) -> None:
        """Put everything back, bit for bit.

        Raises:
            ValueError: The model was converted again since, so that this would scramble it.
        """
        if self.to != self._before:
            if (held := _stored(self.model)) != self.to:
                raise ValueError(
                    f"The model has the pairing {held!r} now, and this conversion was to "
                    f"{self.to!r}: it was converted again since. Undo the last conversion first, "
                    f"or call convert_pairing with the pairing that it shall have."
                )
            _convert(self.model, self._before)
            self.to = self._before

    def __enter__(self) -> "ConvertedPairing":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def convert_pairing(model: nn.Module, *, to: Pairing) -> ConvertedPairing:
    """Bring the queries and keys of a whole model into the pairing ``to``, in place.

    The rows of every projection that pairs rotated channels change places (``row_orders`` says
    which), and each attention module then rotates pairs of the other kind, with the cosines of its
    own rotary module. Logits stay what they were, up to the rounding of sums in another order;
    ``model.state_dict()`` is what a framework of that pairing loads, and keys in caches have it.

    Before anything is changed, attention is run in both ways in float64, on a copy with random
    weights of one layer of each kind: if the scores were not the same, or if they could not have
    told, the model is refused.

    ``torch.compile`` leaves the attention modules of a converted model as they are, and compiles
    what is between them.

    The configuration notes the pairing as ``posenc_pairing``, which ``positional_setup`` reads;
    plain transformers does not. A model that was saved so must be given its rotation again after
    loading, by ``rotate_as_converted``, or be converted back before it is saved.

    Args:
        model: Of transformers, its weights loaded, not quantized.
        to: ``"half"`` or ``"interleaved"``. The pairing that it has already changes nothing.

    Raises:
        ValueError: The layout of its weights or its manner of rotating is not known, heads rotate
            one pair alone, or the measurement failed; or it has the pairing already, and was loaded
            without its rotation. The model is as it was.

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
    before = _stored(model)
    if to == before:
        check_turned(model)
        return ConvertedPairing(model, to, {}, before)
    return ConvertedPairing(model, to, _convert(model, to), before)


def rotate_as_converted(model: nn.Module) -> nn.Module:
    """Give a model the rotation that its weights were converted for, after loading them.

    Args:
        model: One whose configuration has ``posenc_pairing``, loaded by transformers.

    Returns:
        The model.

    Raises:
        ValueError: Its configuration says nothing of a conversion, or as of ``convert_pairing``.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        ...                      posenc_pairing="interleaved")
        >>> model = rotate_as_converted(LlamaModel(config))
        >>> "forward" in vars(model.layers[0].self_attn)  # of this model alone
        True
    """
    to = read(_config(model)).values.get(MARK)
    if to is None:
        raise ValueError(
            f"The configuration has no {MARK}; nothing says that these weights were converted. "
            f"convert_pairing converts them."
        )
    _turn(model, checked_pairing(to), _orders(model))
    return model


def check_turned(model: nn.Module) -> None:
    """Refuse a model of converted weights that rotates by its own code, the old pairs.

    Within a module that has no configuration of transformers each part is asked for its own.

    Raises:
        ValueError: Its configuration says ``posenc_pairing``, and nobody gave it that rotation.
    """
    if not hasattr(getattr(model, "config", None), "get_text_config"):
        for part in model.children():
            check_turned(part)
        return
    marked = _text(model).values.get(MARK)
    if marked is None or checked_pairing(marked) == pairing_of_code(_text(model)):
        return
    if not any(map(calls_others, model.modules())):
        raise ValueError(
            f"The weights of {type(model).__name__} were converted to the pairing {marked!r}, as "
            f"its configuration says ({MARK}), and it rotates by its own code, in the other one: "
            f"what it gives means nothing. Call rotate_as_converted(model) after loading it."
        )


def _convert(model: nn.Module, to: Pairing) -> RowOrders:
    """Permutes and changes the rotation, after both were measured."""
    orders = _orders(model)
    parameters = dict(model.named_parameters())
    for name in orders:
        if name not in parameters or not parameters[name].is_floating_point():
            raise ValueError(f"{name} is no floating parameter. Load the model without quantizing.")
        if parameters[name].is_meta:
            raise ValueError(f"{name} is not loaded (it is on the meta device). Load the weights.")
    _turn(model, to, orders)
    with torch.no_grad():
        for name, order in orders.items():
            parameters[name].copy_(order.converted(parameters[name], to))
    _note(model, to)
    return orders


def _turn(model: nn.Module, to: Pairing, orders: RowOrders) -> None:
    """Changes the rotation of every layer to ``to``, or back to its own."""
    found = _attentions(model, orders)
    if to == pairing_of_code(_text(model)):
        check_own_forward(found)
        for each in found:
            without_functions(each.module)
        return
    swapped: list[tuple[Attention, dict[str, Callable[..., Any]]]] = measure(model, found, to)
    for each, functions in swapped:
        with_functions(each.module, functions)


def _attentions(model: nn.Module, orders: RowOrders) -> list[Attention]:
    layers = _own_rotaries(_text(model))
    found: dict[str, Attention] = {}
    for name, order in orders.items():
        place = PLACE.match(name)
        assert place is not None
        path, layer = place["attention"], layers[int(place["layer"])]
        assert layer is not None
        if layer.rotated_dim == 2:
            raise ValueError(
                f"{path} rotates 2 channels of a head, one pair, which is the same in both "
                f"pairings. Leave the model as it is."
            )
        each = found.setdefault(path, Attention(path, model.get_submodule(path), layer, {}))
        each.orders[name.removeprefix(f"{path}.")] = order
    return list(found.values())


def _orders(model: nn.Module) -> RowOrders:
    # Without duplicates: a projection that two layers share is permuted once.
    shapes = {name: tuple(x.shape) for name, x in model.named_parameters()}
    return row_orders(_config(model), shapes)


def _own_rotaries(config: Configuration) -> list[Rotary | None]:
    """The encodings of the layers, in the pairing of the model's code."""
    bare = Configuration({k: v for k, v in config.values.items() if k != MARK}, config.model_type)
    layers = read_layers_of(bare, None)
    return [layer and layer.rotary for layer in layers]


def _stored(model: nn.Module) -> Pairing:
    values = _text(model)
    marked = values.values.get(MARK)
    return pairing_of_code(values) if marked is None else checked_pairing(marked)


def _note(model: nn.Module, to: Pairing) -> None:
    held = _config(model)
    held = held.get_text_config() if hasattr(held, "get_text_config") else held
    if to == pairing_of_code(_text(model)):
        vars(held).pop(MARK, None)
    else:
        setattr(held, MARK, to)


def _text(model: nn.Module) -> Configuration:
    return read(_config(model))


def _config(model: nn.Module) -> Any:
    config = getattr(model, "config", None)
    if config is None:
        raise TypeError(
            f"{type(model).__name__} has no configuration; convert_pairing takes a model of "
            f"transformers. For tensors alone there is convert_weights."
        )
    return config
