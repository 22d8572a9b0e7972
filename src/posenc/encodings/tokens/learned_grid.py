"""The learned encoding of a grid: one trained vector a point, resampled to other grids."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import isqrt, prod
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholePoints
from posenc.encodings.tokens.addition import Added
from posenc.encodings.tokens.learned import resampled
from posenc.guards import floating, may_look
from posenc.positions import NOWHERE, checked, placeless
from posenc.positions.checks import checked_points
from posenc.positions.placeless import PADDING

Interpolation = Literal["bicubic", "linear"]

KEYS = ("pos_embed", "position_embeddings", "position_embedding.weight", "positional_embedding")
"""How the weight ends in the state dicts of timm, transformers (ViT; CLIP and SigLIP) and CLIP."""

USUAL_PREFIX = 2
"""A class token and a distillation token; a longer prefix must be given."""


class LearnedGrid(Added):
    """A trained vector for each point of a grid, added to the embeddings of its patches.

    PE(y, x) = weight[prefix + y · W + x],  weight of shape [prefix + H · W, dim]

    and likewise for any number of axes, the last one fastest. Positions are ``[*batch, seq, axes]``
    as of ``posenc.positions.grid(H, W)``. Class tokens and registers have the first rows, as
    ``posenc.positions.prefixed`` places them; padding gets zeros.

    Args:
        size: Number of points along each axis, (H, W) for images.
        prefix: Number of rows before those of the grid.
        std: Standard deviation of the (truncated) normal initialization; 0.02 in ViT.

    Reference:
        Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1 and appendix D.4
        (arXiv:2010.11929).

    Example:
        >>> from posenc.positions import grid, prefixed
        >>> LearnedGrid(8, (14, 14), prefix=1).table(prefixed(grid(14, 14))).shape
        torch.Size([197, 8])
    """

    def __init__(
        self,
        dim: int,
        size: Sequence[int],
        *,
        prefix: int = 0,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(dim=dim, **{f"size[{axis}]": length for axis, length in enumerate(size)})
        check_whole(0, prefix=prefix)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.size, self.prefix, self.std = tuple(size), prefix, std
        rows = prefix + prod(self.size)
        self.weight = nn.Parameter(torch.empty(rows, dim, device=device, dtype=dtype))
        self.reset_parameters()

    @classmethod
    def from_weight(
        cls, weight: Tensor, *, size: Sequence[int] | None = None, prefix: int | None = None
    ) -> "LearnedGrid":
        """The encoding with a copy of a trained weight; a frozen parameter stays frozen.

        Args:
            weight: ``[rows, dim]`` or ``[1, rows, dim]``, or ``[1, *size, dim]`` as of SAM.
            size: The sizes of its grid; by default those of the weight, or of a square.
            prefix: Rows before the grid; by default what a square leaves, if that is 2 or less.
        """
        if weight.ndim > 3:
            size, prefix = weight.shape[1:-1], 0
        rows = weight.detach().reshape(-1, weight.shape[-1])
        size, prefix = _layout(len(rows), size, prefix)
        made = cls(rows.shape[1], size, prefix=prefix, device=rows.device, dtype=rows.dtype)
        with torch.no_grad():
            made.weight.copy_(rows)
        made.weight.requires_grad_(not isinstance(weight, nn.Parameter) or weight.requires_grad)
        return made

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, Tensor],
        key: str | None = None,
        *,
        size: Sequence[int] | None = None,
        prefix: int | None = None,
    ) -> "LearnedGrid":
        """The encoding in the state dict of ViT, DeiT, MAE, DINOv2, BEiT, CLIP, SigLIP or SAM.

        ``key`` names the weight; by default it is found by how timm, transformers and CLIP name it.
        A weight does not tell its grid: a square is assumed, with up to two rows before it. Pass
        ``size`` for other images, as ``size=(9, 16)`` for 16:9 with or without a class token.
        """
        if key is None:
            found = [name for name in state if f".{name}".endswith(tuple(f".{k}" for k in KEYS))]
            if len(found) != 1:
                raise KeyError(f"The state dict has {found or 'no grid'}; give the key of one.")
            key = found[0]
        return cls.from_weight(state[key], size=size, prefix=prefix)

    def reset_parameters(self) -> None:
        """Draw every row anew from N(0, std²), cut off at 2."""
        if self.std:
            nn.init.trunc_normal_(self.weight, std=self.std)
        else:
            nn.init.zeros_(self.weight)

    def table(self, positions: WholePoints, *, dtype: Dtype = None) -> Embeddings:
        """The rows of ``positions``, in the dtype of the weights unless another is asked for."""
        dtype = self.weight.dtype if dtype is None else floating(dtype)
        points = checked(positions, device=self.weight.device)
        checked_points(points, len(self.size))
        padding = points[..., :1] == PADDING
        rows = F.embedding(self._rows(points.masked_fill(padding, 0)), self.weight)
        return rows.masked_fill(padding, 0).to(dtype)

    def _rows(self, points: Tensor) -> Tensor:
        """Which row of the weight each token takes."""
        nowhere, number = placeless(points), points[..., 0] - NOWHERE
        row, inside = torch.zeros_like(number), torch.ones_like(nowhere)
        for along, size in zip(points.unbind(-1), self.size, strict=True):
            row = row * size + along
            inside = inside & (along >= 0) & (along < size)
        outside = ~torch.where(nowhere, number < self.prefix, inside)
        if points.is_cpu and may_look(points) and bool(outside.any()):
            point = points[outside][0].tolist()
            if bool(nowhere[outside][0]):
                point = f"token {point[0] - NOWHERE} of the prefix"
            raise IndexError(f"positions hold {point}; {self!r} has no row for it.")
        row = torch.where(nowhere, number, row + self.prefix)
        return row.masked_fill(outside, len(self.weight))  # which devices refuse to look up

    def resampled(
        self,
        size: Sequence[int],
        *,
        interpolation: Interpolation = "bicubic",
        antialias: bool = False,
    ) -> Float[Tensor, "rows dim"]:
        """The rows that a grid of another size has, prefix first; gradients reach the weight.

        Each axis is interpolated by itself with ``align_corners=False``, in float32 at least.
        Bicubic is what ViT, DeiT, CLIP, SigLIP, BEiT and DINOv2 do in transformers; timm's
        ``resample_abs_pos_embed`` antialiases it; SigLIP 2 antialiases ``"linear"``.

        Args:
            antialias: Whether a smaller grid averages over what it leaves out.
        """
        check_choice(get_args(Interpolation), interpolation=interpolation)
        if len(size) != len(self.size):
            raise ValueError(f"size is {size}; {self!r} has {len(self.size)} axes.")
        mode = "bicubic" if interpolation == "bicubic" else "bilinear"
        points = self.weight[self.prefix :].to(working_dtype(self.weight.dtype))
        points = points.unflatten(0, self.size)
        for axis, length in enumerate(size):
            points = resampled(points, axis, length, mode=mode, antialias=antialias)
        rows = points.flatten(0, -2).to(self.weight.dtype)
        return torch.cat((self.weight[: self.prefix], rows))

    @torch.no_grad()
    def resized(
        self,
        size: Sequence[int],
        *,
        interpolation: Interpolation = "bicubic",
        antialias: bool = False,
    ) -> "LearnedGrid":
        """A new encoding of another size, interpolated as ``resampled`` says."""
        rows = self.resampled(size, interpolation=interpolation, antialias=antialias)
        made, learns = deepcopy(self), self.weight.requires_grad
        made.size, made.weight = tuple(size), nn.Parameter(rows, learns)
        return made


def _layout(
    rows: int, size: Sequence[int] | None, prefix: int | None
) -> tuple[tuple[int, ...], int]:
    """The size and the prefix of a weight of so many rows; a square unless a size is given."""
    if size is None:
        side = isqrt(max(rows - (prefix or 0), 0))
        size = (side, side)
        if prefix is None and rows - side**2 > USUAL_PREFIX:
            raise ValueError(f"weight has {rows} rows, which no square explains; give its size.")
    if prefix is None:
        prefix = rows - prod(size)
    if prefix < 0 or prefix + prod(size) != rows:
        raise ValueError(f"weight has {rows} rows; size {size} and prefix {prefix} do not fit.")
    return tuple(size), prefix
