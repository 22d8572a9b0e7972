"""The layer that works on each token alone, and dropout as it and blocks have it."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.backends.base import Dropout
from posenc.encodings.tokens.addition import checked_dropout

Activation = str | Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
"""The activations that can be asked for by name."""


@dataclass(frozen=True)
class FeedForwardStages:
    """Every number of one feed-forward layer: inner, after the activation, result."""

    inner: Tensor
    activated: Tensor
    output: Tensor


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, the same for each token.

    y = activation(x W₁ + b₁) W₂ + b₂,  W₁ [dim, inner], W₂ [inner, dim]

    Args:
        dim: Width of a token.
        inner: Width between the maps; 4·dim in the paper.
        activation: ``"relu"`` as in the paper, ``"gelu"`` as in BERT, or a function.
        dropout: Probability of dropping an activated element while training.
        bias: Whether the maps have b₁ and b₂.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", equation 2 (arXiv:1706.03762).

    Example:
        >>> import torch
        >>> FeedForward(16, inner=64)(torch.zeros(2, 3, 16)).shape
        torch.Size([2, 3, 16])
    """

    def __init__(
        self,
        dim: int,
        inner: int,
        activation: Activation = "relu",
        dropout: float = 0.0,
        bias: bool = True,
    ):
        super().__init__()
        check_whole(dim=dim, inner=inner)
        self.dim, self.inner_dim = dim, inner
        self.expand = nn.Linear(dim, inner, bias=bias)
        self.contract = nn.Linear(inner, dim, bias=bias)
        if not callable(activation):
            check_choice(tuple(ACTIVATIONS), activation=activation)
            activation = ACTIVATIONS[activation]
        self.activation = activation
        self.dropout = nn.Dropout(checked_dropout(dropout))

    def forward(
        self, x: Float[Tensor, "*batch seq dim"], drop: Dropout | None = None
    ) -> Float[Tensor, "*batch seq dim"]:
        """``stages(x).output``; with ``drop``, where hidden states are cut among devices."""
        x, layer = self.activation(self.expand(x)), self.dropout
        return self.contract(dropped(x, layer, drop, 1) if layer.training else x)

    def stages(self, x: Float[Tensor, "*batch seq dim"]) -> FeedForwardStages:
        """The equation step by step."""
        inner = self.expand(x)
        # Of a copy, since an activation that works in place would leave its own result there.
        activated = self.activation(inner.clone())
        return FeedForwardStages(inner, activated, self.contract(self.dropout(activated)))


def drops(module: nn.Module) -> bool:
    """Whether a layer inside drops anything now: one may be told to, or not to, by itself."""
    layers = (each for each in module.modules() if isinstance(each, nn.Dropout))
    return any(layer.training and layer.p > 0 for layer in layers)


def dropped(x: Tensor, layer: nn.Dropout, drop: Dropout | None = None, use: int = 0) -> Tensor:
    """``layer(x)`` where the layer trains; with ``drop``, the same on the elements it chooses.

    Ask ``layer.training`` first where a token is decoded: a call takes as long as a norm.
    """
    return layer(x) if drop is None or not layer.training else drop(x, layer.p, use)
