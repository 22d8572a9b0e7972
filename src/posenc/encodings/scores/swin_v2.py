"""Swin V2's continuous bias: a small network of the displacement on a logarithmic scale."""

from copy import deepcopy
from math import log2

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.scores.windows import WindowBias, checked_window
from posenc.encodings.shapes import Device, Dtype
from posenc.guards import widest
from posenc.numerics.product import products

EDGE = 8.0  # the coordinate of the edge of the window, before the logarithm
LARGEST = 16.0  # no bias reaches it


class SwinV2Bias(WindowBias):
    """A network with two inputs, the displacement along each axis of an image.

    bias(h, q, k) = 16 · σ(MLP(Δŷ, Δx̂))_h
    Δx̂ = sign(u) · log2(|u| + 1) / log2(8),  u = 8 · Δx / (W − 1)

    Positions are points (y, x), as of ``posenc.positions.grid(H, W)``. The bias is added to scores
    that carry the learned scale of the paper's cosine attention.

    Args:
        window: Height and width H, W, or one number for both; 8 in the paper.
        pretrained_window: The window whose H, W stand in u, if the network was trained on another.

    Reference:
        Liu et al. 2022, "Swin Transformer V2", equations 3 and 4 (arXiv:2111.09883); 16 σ(·) and
        the factors 8 stand in the authors' code.

    Example:
        >>> from posenc.positions import grid
        >>> SwinV2Bias(heads=3, window=8).table(grid(8, 8), grid(8, 8)).shape
        torch.Size([3, 64, 64])
    """

    def __init__(
        self,
        heads: int,
        window: int | tuple[int, int] = 8,
        *,
        pretrained_window: int | tuple[int, int] | None = None,
        hidden: int = 512,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden)
        self.heads, self.hidden = heads, hidden
        self.window = self.pretrained_window = checked_window(window)
        if pretrained_window is not None:
            self.pretrained_window = checked_window(pretrained_window, "pretrained_window")
        factory = {"device": device, "dtype": dtype}
        self.mlp = nn.Sequential(
            nn.Linear(2, hidden, **factory),
            nn.ReLU(),
            nn.Linear(hidden, heads, bias=False, **factory),
        )

    def coordinates(self, *, device: Device = None) -> Float[Tensor, "offsets 2"]:
        """(Δŷ, Δx̂) of every displacement within the window, row after row, in float64."""
        wide = widest(torch.device(device or "cpu"))
        axes = []
        for size, trained in zip(self.window, self.pretrained_window, strict=True):
            apart = torch.arange(1 - size, size, dtype=wide, device=device)
            scaled = EDGE * apart / max(trained - 1, 1)
            axes.append(scaled.sign() * (scaled.abs() + 1).log2() / log2(EDGE))
        return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, 1)

    def rows(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "offsets heads"]:
        """16 · σ(MLP(Δŷ, Δx̂)) of every displacement."""
        first, last = self.mlp[0], self.mlp[2]
        x = self.coordinates(device=device).to(dtype)
        hidden = products(x, first.weight) + first.bias.to(dtype)  # type: ignore[arg-type,union-attr,operator]
        return LARGEST * products(hidden.relu(), last.weight).sigmoid()  # type: ignore[arg-type]

    def resized(self, window: int | tuple[int, int]) -> "SwinV2Bias":
        """A new encoding for another window with a copy of the network, which stays as trained."""
        other = deepcopy(self)
        other.window = checked_window(window)
        return other
