"""Biases of displacements within a window: Swin's table, and Swin V2's small network."""

from collections.abc import Mapping
from copy import deepcopy
from math import log2
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.windows import SPECIAL, WindowBias, checked_window
from posenc.encodings.shapes import Device, Dtype
from posenc.guards import widest
from posenc.numerics.product import products


class SwinBias(WindowBias):
    """A learned number for each head and each displacement within a window of an image.

    bias(h, q, k) = weight[(Δy + H − 1)(2W − 1) + Δx + W − 1, h],  (Δy, Δx) = q − k

    Positions are points (y, x), as of ``posenc.positions.grid(H, W)``, anywhere in an image. Load
    ``relative_position_bias_table`` of a checkpoint as ``weight``. Class tokens get no bias; with
    ``class_token``, as in BEiT and data2vec, there are three rows more: what they see in patches,
    what patches see in them, and what they see in each other.

    Args:
        window: Height and width H, W, or one number for both; 7 in the paper.
        class_token: Whether tokens that stand nowhere have rows of their own.

    Reference:
        Liu et al. 2021, "Swin Transformer", equation 4 (arXiv:2103.14030); Bao et al. 2022, "BEiT"
        (arXiv:2106.08254), whose code has the rows of the class token.

    Example:
        >>> from posenc.positions import grid
        >>> SwinBias(heads=3, window=7).table(grid(7, 7), grid(7, 7)).shape
        torch.Size([3, 49, 49])
    """

    head_axes: ClassVar[Mapping[str, int] | None] = {"weight": 1}

    def __init__(
        self,
        heads: int,
        window: int | tuple[int, int] = 7,
        *,
        class_token: bool = False,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads)
        self.heads, self.window, self.std = heads, checked_window(window), std
        self.class_token = class_token
        height, width = self.window
        rows = (2 * height - 1) * (2 * width - 1) + SPECIAL * class_token
        self.weight = nn.Parameter(torch.empty(rows, heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every bias from N(0, std²), cut off at 2."""
        nn.init.trunc_normal_(self.weight, std=self.std)

    def rows(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "offsets heads"]:
        return self.weight.to(dtype)

    @torch.no_grad()
    def resized(
        self, window: int | tuple[int, int], *, interpolation: str = "bicubic"
    ) -> "SwinBias":
        """A new encoding for another window; ``"linear"`` is what transformers does for BEiT."""
        check_choice(("bicubic", "linear"), interpolation=interpolation)
        other = deepcopy(self)
        other.window = checked_window(window)
        sizes = [[2 * size - 1 for size in each] for each in (self.window, other.window)]
        within = sizes[0][0] * sizes[0][1]
        wide = self.weight[:within].to(working_dtype(self.weight.dtype))
        images = wide.T.unflatten(-1, sizes[0]).unsqueeze(0)
        mode = "bicubic" if interpolation == "bicubic" else "bilinear"
        images = F.interpolate(images, size=sizes[1], mode=mode, align_corners=False)
        rows = torch.cat((images[0].flatten(1).T.to(self.weight.dtype), self.weight[within:]))
        other.weight = nn.Parameter(rows, self.weight.requires_grad)
        return other


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
