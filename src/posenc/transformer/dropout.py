"""Dropout of hidden states: torch's own; or by shards, where rows are cut among devices."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from posenc.backends.base import Dropout


def drops(module: nn.Module) -> bool:
    """Whether a layer inside drops anything now: one may be told to, or not to, by itself.

    Example:
        >>> layers = nn.Sequential(nn.Dropout(0.0), nn.Dropout(0.1))
        >>> drops(layers), drops(layers.eval())
        (True, False)
    """
    layers = (each for each in module.modules() if isinstance(each, nn.Dropout))
    return any(layer.training and layer.p > 0 for layer in layers)


def falling(layer: nn.Dropout, drop: Dropout | None, use: int = 0) -> Callable[[Tensor], Tensor]:
    """``layer``; with ``drop``, the same on the elements that it chooses."""
    return layer if drop is None else partial(_dropped, layer, drop, use)


def _dropped(layer: nn.Dropout, drop: Dropout, use: int, x: Tensor) -> Tensor:
    return drop(x, layer.p, use) if layer.training else x
