"""Dropout of hidden states: torch's own; or by shards, where rows are cut among devices."""

from torch import Tensor, nn

from posenc.backends.base import Dropout
from posenc.encodings.tokens.addition import checked_dropout
from posenc.guards import hooked


def drops(module: nn.Module) -> bool:
    """Whether a layer inside drops anything now: one may be told to, or not to, by itself.

    Example:
        >>> layers = nn.Sequential(nn.Dropout(0.0), nn.Dropout(0.1))
        >>> drops(layers), drops(layers.eval())
        (True, False)
    """
    layers = (each for each in module.modules() if isinstance(each, nn.Dropout))
    return any(layer.training and layer.p > 0 for layer in layers)


def dropped(layer: nn.Dropout, x: Tensor, drop: Dropout | None, use: int = 0) -> Tensor:
    """``layer(x)``; with ``drop``, the same on the elements that it chooses.

    Raises:
        TypeError: With ``drop``, which does not call the layer: it is another one, or has hooks.
        ValueError: Its ``p`` was set to what is no probability.
    """
    if drop is None:
        return layer(x)
    if type(layer) is not nn.Dropout or hooked(layer):
        raise TypeError(
            f"A dropout of the encoder is a {type(layer).__name__}, or has a hook, which would not "
            f"run where rows are cut among devices: shards choose the elements. Leave the Dropout "
            f"that it was built with."
        )
    return drop(x, checked_dropout(layer.p), use) if layer.training else x
