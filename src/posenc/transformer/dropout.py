"""Dropout of hidden states: torch's own; or by shards, where rows are cut among devices."""

from torch import Tensor, nn

from posenc.backends.base import Dropout


def drops(module: nn.Module) -> bool:
    """Whether a layer inside drops anything now: one may be told to, or not to, by itself."""
    layers = (each for each in module.modules() if isinstance(each, nn.Dropout))
    return any(layer.training and layer.p > 0 for layer in layers)


def dropped(x: Tensor, layer: nn.Dropout, drop: Dropout | None = None, use: int = 0) -> Tensor:
    """``layer(x)`` where the layer trains; with ``drop``, the same on the elements it chooses.

    Ask ``layer.training`` first where a token is decoded: a call takes as long as a norm.
    """
    return layer(x) if drop is None or not layer.training else drop(x, layer.p, use)
