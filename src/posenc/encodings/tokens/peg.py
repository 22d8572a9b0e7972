"""The positional encoding generator of CPVT: a small convolution over the grid."""

from itertools import product
from math import sqrt

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholePoints
from posenc.encodings.tokens.addition import check_fit
from posenc.encodings.told import arguments_told
from posenc.guards import may_look
from posenc.positions import checked, placeless
from posenc.positions.checks import checked_points


class PEG(TokenEncoding):
    """Conditional positions: each channel convolved over the neighborhood, added to the tokens.

    y_p = x_p + b + Σ_o w_o ⊙ x_{p+o},  o in a cube of k^axes displacements around 0

    Positions are ``[*batch, seq, axes]``, as of ``posenc.positions.grid``, in any order. Tokens
    that were dropped count as nothing, as what lies beyond the edge. Class tokens stay as they are.
    Images that are packed in one row must be encoded one by one. The table holds the positions. A
    token depends on its neighbors, so it cannot be encoded alone.

    Args:
        kernel: k, odd; 3 in the paper.
        axes: Number of axes: 2 for images, 3 for video as in UniFormer.

    Reference:
        Chu et al. 2023, "Conditional Positional Encodings for Vision Transformers", section 3.2
        (arXiv:2102.10882); Li et al. 2022, "UniFormer", equation 3 (arXiv:2201.04676).

    Example:
        >>> from posenc.positions import grid, prefixed
        >>> PEG(32)(torch.randn(2, 197, 32), prefixed(grid(14, 14))).shape
        torch.Size([2, 197, 32])
    """

    is_pointwise = False

    def __init__(
        self,
        dim: int,
        kernel: int = 3,
        *,
        axes: int = 2,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(dim=dim, kernel=kernel, axes=axes)
        if kernel % 2 == 0:
            raise ValueError(f"kernel is {kernel}; it must be odd, to have a middle.")
        super().__init__()
        self.dim, self.kernel, self.axes = dim, kernel, axes
        shape = (dim, 1, *(kernel,) * axes)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both anew, uniform within 1/√k^axes, as torch's depthwise convolutions are."""
        bound = 1 / sqrt(self.kernel**self.axes)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def table(
        self, positions: WholePoints, *, dtype: Dtype = None
    ) -> Int64[Tensor, "*batch seq axes"]:
        """The positions themselves as whole numbers, whatever ``dtype``."""
        points = checked(positions)
        checked_points(points, self.axes)
        return points

    def encode(self, x: Embeddings, table: Int64[Tensor, "*rows seq axes"]) -> Embeddings:
        check_fit("PEG", x.shape, (*table.shape[:-1], self.dim))
        if not x.numel():
            return x.clone()
        wide = working_dtype(x.dtype)
        content, weights = x.to(wide), self.weight.to(wide).flatten(1).unbind(-1)
        nowhere = placeless(table)
        keys, steps = self._keys(table, nowhere)
        ordered, order = keys.sort(-1)
        if may_look(ordered) and ordered.is_cpu and not bool(ordered.diff(dim=-1).all()):
            raise ValueError("Two tokens stand at one point; encode packed images one by one.")
        reach = range(-(self.kernel // 2), self.kernel // 2 + 1)
        total = self.bias.to(wide).expand(x.shape)
        for weight, offset in zip(weights, product(reach, repeat=self.axes), strict=True):
            wanted = keys + sum(o * step for o, step in zip(offset, steps, strict=True))
            place = torch.searchsorted(ordered, wanted).clamp(max=keys.shape[-1] - 1)
            there = ordered.gather(-1, place) == wanted
            index = order.gather(-1, place).expand(x.shape[:-1]).unsqueeze(-1)
            near = content.gather(-2, index.expand(x.shape))
            total = total + (near * weight).where(there.unsqueeze(-1), 0.0)
        total = total.where(~nowhere.unsqueeze(-1), 0.0)
        return (content + total).to(x.dtype)

    def _keys(self, points: Tensor, nowhere: Tensor) -> tuple[Tensor, list[Tensor]]:
        """A number for each point, and how it changes with a step along each axis."""
        mark = nowhere.unsqueeze(-1)
        low = points.masked_fill(mark, 2**62).amin(-2, keepdim=True)
        high = points.masked_fill(mark, -(2**62)).amax(-2, keepdim=True)
        low = torch.minimum(low, high)  # where no token has a place
        room = (high - low + self.kernel).flatten(0, -2).amax(0).unbind()
        steps = [torch.ones_like(room[0])]
        for size in reversed(room[1:]):
            steps.insert(0, steps[0] * size)
        inside = (points - low + self.kernel // 2).masked_fill(mark, 0)
        keys = (inside * torch.stack(steps)).sum(-1)
        # Tokens without a place have keys of their own, far below those of any grid.
        own = -(1 << 62) - nowhere.to(torch.int64).cumsum(-1)
        return torch.where(nowhere, own, keys), steps

    def extra_repr(self) -> str:
        return arguments_told(self, kernel=None)
