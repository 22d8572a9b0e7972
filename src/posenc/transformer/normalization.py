"""Layer normalization, and batch normalization beside it as the contrast that it is taught by.

Both are one equation, y = γ·(x − mean) / √(variance + ε) + β. They differ in the axes over which
mean and variance are taken: layer normalization looks along the features of one token, batch
normalization along all tokens of one feature.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.guards import working_dtype


@dataclass(frozen=True)
class NormStages:
    """Every number of one normalization; in float32 at least, but for the result.

    Attributes:
        mean: Mean, of size 1 along the axes that it is taken over.
        variance: Mean squared distance from it (divided by n, not n − 1), shaped likewise.
        normalized: (x − mean) / √(variance + ε).
        scaled: normalized · γ + β, the result, in the dtype of the tokens.
    """

    mean: Tensor
    variance: Tensor
    normalized: Tensor
    scaled: Tensor


class _Normalization(nn.Module):
    """What norms have in common: a weight γ and a bias β for each feature, and ε."""

    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        check_whole(dim=dim)
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.empty(dim))
        self.bias = nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """γ = 1 and β = 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.dim}, eps={self.eps}"


class LayerNorm(_Normalization):
    """Each token standardized over its own features.

    y = γ·(x − mean) / √(variance + ε) + β, mean and variance over the last axis

    Args:
        dim: Number of features; γ (``weight``) and β (``bias``) have one value each.
        eps: ε, under the root.

    Reference:
        Ba, Kiros, Hinton 2016, "Layer Normalization", equation 4 (arXiv:1607.06450).

    Example:
        >>> stages = LayerNorm(4).stages(torch.tensor([2.0, 4.0, 6.0, 8.0]))
        >>> stages.mean.item(), stages.variance.item()
        (5.0, 5.0)
        >>> stages.normalized
        tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """

    def forward(self, x: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
        """``stages(x).scaled``, in one kernel."""
        return F.layer_norm(x, (self.dim,), self.weight, self.bias, self.eps)

    def stages(self, x: Float[Tensor, "*shape dim"]) -> NormStages:
        """The equation step by step."""
        return _stages(x, -1, self.weight, self.bias, self.eps)


class BatchNorm(_Normalization):
    """Each feature standardized over all tokens of the batch: what transformers do not do.

    y = γ·(x − mean) / √(variance + ε) + β, mean and variance over every axis but the last

    A token's result depends on the other sentences of its batch and on their padding, and one
    token alone has no variance: the reasons why transformers normalize each token instead. There
    are no running averages; it always looks at the batch that it is given.

    Args:
        dim: Number of features; γ (``weight``) and β (``bias``) have one value each.
        eps: ε, under the root.

    Reference:
        Ioffe, Szegedy 2015, "Batch Normalization", algorithm 1 (arXiv:1502.03167).

    Example:
        >>> features = torch.tensor([[0.45, 0.55], [0.60, 0.20]])
        >>> BatchNorm(2, eps=0.0)(features).detach().round(decimals=4)
        tensor([[-1.,  1.],
                [ 1., -1.]])
    """

    def forward(self, x: Float[Tensor, "*tokens dim"]) -> Float[Tensor, "*tokens dim"]:
        """``stages(x).scaled``."""
        return self.stages(x).scaled

    def stages(self, x: Float[Tensor, "*tokens dim"]) -> NormStages:
        """The equation step by step."""
        if x.shape[:-1].numel() < 2:  # whose variance would be 0
            raise ValueError(f"x has shape {tuple(x.shape)}; batch normalization needs two tokens.")
        return _stages(x, tuple(range(x.ndim - 1)), self.weight, self.bias, self.eps)


def _stages(
    x: Tensor, axes: int | tuple[int, ...], weight: Tensor, bias: Tensor, eps: float
) -> NormStages:
    wide = x.to(working_dtype(x.dtype))  # in which squares have room, and ε
    mean = wide.mean(axes, keepdim=True)
    variance = (wide - mean).square().mean(axes, keepdim=True)
    normalized = (wide - mean) / (variance + eps).sqrt()
    return NormStages(mean, variance, normalized, (normalized * weight + bias).to(x.dtype))
