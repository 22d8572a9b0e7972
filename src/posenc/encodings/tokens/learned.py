"""Learned encodings: a trained vector for each position, row and column of a grid, or level."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import TokenEncoding, checked_rows, working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholePoints, WholeRow
from posenc.encodings.tokens.addition import Added
from posenc.encodings.told import Drawn
from posenc.guards import floating
from posenc.numerics.product import joined
from posenc.positions import Integers, checked, placeless
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed


class Learned(Drawn, Added):
    """A trained vector for each position, added to the embeddings.

    PE(p) = weight[p + offset],  weight of shape [max_len + offset, dim]

    There is no position past the last row; ``resized`` interpolates to another length.

    Args:
        offset: Rows before that of position 0: 2 in OPT, RoBERTa's padding index + 1 = 2.

    Reference:
        Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1
        (arXiv:1705.03122); Devlin et al. 2019, "BERT" (arXiv:1810.04805).

    Example:
        >>> Learned(8, max_len=512).table(torch.tensor([0, 511])).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        dim: int,
        max_len: int,
        *,
        offset: int = 0,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(dim=dim, max_len=max_len)
        check_whole(0, offset=offset)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.max_len, self.offset, self.std = max_len, offset, std
        self.weight = nn.Parameter(torch.empty(max_len + offset, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def table(self, positions: WholeRow, *, dtype: Dtype = None) -> Embeddings:
        dtype = self.weight.dtype if dtype is None else floating(dtype)
        weight = self.weight[self.offset :]
        positions = checked_rows(weight, checked(positions, device=weight.device))
        return F.embedding(positions, weight).to(dtype)

    @torch.no_grad()
    def resized(self, max_len: int) -> "Learned":
        """A new encoding of another length, interpolated linearly along the positions.

        As torch's ``interpolate`` with ``align_corners=False``, antialiased where it is shorter, in
        float32 at least. The ``offset`` rows stay.
        """
        before, rows = self.weight[: self.offset], self.weight[self.offset :]
        wide = resampled(rows.to(working_dtype(rows.dtype)), 0, max_len)
        made, rows = deepcopy(self), torch.cat((before, wide.to(rows.dtype)))
        made.max_len, made.weight = max_len, nn.Parameter(rows, self.weight.requires_grad)
        return made


def resampled(
    points: Float[Tensor, "..."],
    axis: int,
    length: int,
    *,
    mode: str = "bilinear",
    antialias: bool = True,
) -> Float[Tensor, "..."]:
    """``points`` interpolated along one axis; torch antialiases images alone, so it is one."""
    if points.shape[axis] == length:
        return points
    lines = points.movedim(axis, -1)
    image = lines.reshape(1, -1, 1, points.shape[axis])
    made = F.interpolate(
        image, size=(1, length), mode=mode, align_corners=False, antialias=antialias
    )
    return made.view(*lines.shape[:-1], length).movedim(-1, axis)


Join = Literal["sum", "forward", "backward"]


class AxialLearned(Drawn, Added):
    """A trained vector for each row and one for each column, summed or side by side.

    ``"sum"``       PE(y, x) = tables[0][y] + tables[1][x]      NaViT, Pix2Struct, Gemma 4
    ``"forward"``   PE(y, x) = [tables[0][y] | tables[1][x]]    Reformer, with rows of text
    ``"backward"``  PE(y, x) = [tables[1][x] | tables[0][y]]    DETR, Florence-2

    and likewise for any number of axes. Positions are ``[*batch, seq, axes]``, as of
    ``posenc.positions.grid(H, W)``. Class tokens and padding get zeros.

    Args:
        dim: Width of the embeddings. Side by side, axes share it equally; the first has the rest.
        size: Number of vectors of each axis, (H, W) for images.

    Reference:
        Dehghani et al. 2023, "NaViT", section 3.2 (arXiv:2307.06304), for the sum; Kitaev et al.
        2020, "Reformer" (arXiv:2001.04451), and ``PositionEmbeddingLearned`` of
        facebookresearch/detr, side by side.

    Example:
        >>> from posenc.positions import grid
        >>> AxialLearned(8, (50, 50), "backward").table(grid(3, 4)).shape
        torch.Size([12, 8])
    """

    def __init__(
        self,
        dim: int,
        size: Sequence[int],
        join: Join = "sum",
        *,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(dim=dim, **{f"size[{axis}]": length for axis, length in enumerate(size)})
        check_choice(get_args(Join), join=join)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.size, self.join, self.std = tuple(size), join, std
        rows = zip(self.size, _widths(dim, len(self.size), join), strict=True)
        self.tables = nn.ParameterList(
            nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) for shape in rows
        )
        self.reset_parameters()

    @classmethod
    def from_tables(cls, tables: Sequence[Tensor], join: Join = "sum") -> "AxialLearned":
        """The encoding with copies of trained tables ``[length, width]``, one a coordinate.

        DETR's are ``[row_embeddings.weight, column_embeddings.weight]`` with ``"backward"``;
        Gemma 4's ``position_embedding_table.flip(0)``, which has x first.
        """
        sizes, widths = zip(*(table.shape for table in tables), strict=True)
        dim = widths[0] if join == "sum" else sum(widths)
        made = cls(dim, sizes, join, device=tables[0].device, dtype=tables[0].dtype)
        for mine, given in zip(made.tables, tables, strict=True):
            with torch.no_grad():
                mine.copy_(given)
            mine.requires_grad_(not isinstance(given, nn.Parameter) or given.requires_grad)
        return made

    def table(self, positions: WholePoints, *, dtype: Dtype = None) -> Embeddings:
        """The vectors of ``positions``, in the dtype of the weights unless another is asked for."""
        own, device = self.tables[0].dtype, self.tables[0].device
        asked = own if dtype is None else floating(dtype)
        points = checked(positions, device=device)
        checked_points(points, len(self.size))
        points, nowhere = among_places(points)
        # Gradients of many points are summed in one row; in 16 bits their sum would stand still.
        wide = [table.to(working_dtype(own)) for table in self.tables]
        rows = [
            F.embedding(along, table).to(torch.promote_types(asked, own))
            for along, table in zip(points.unbind(-1), wide, strict=True)
        ]
        if self.join == "sum":
            made = joined(rows, 0, torch.stack).sum(0)
        else:
            made = joined(rows if self.join == "forward" else rows[::-1], -1)
        return zeroed(made, nowhere).to(asked)

    def __repr__(self) -> str:
        return f"AxialLearned({self.extra_repr()})"


def _widths(dim: int, axes: int, join: Join) -> list[int]:
    """The width of each axis; side by side the first of them has what is left over."""
    if join == "sum":
        return [dim] * axes
    widths = [dim // axes + dim % axes] + [dim // axes] * (axes - 1)
    return widths if join == "forward" else widths[::-1]


class LevelEmbedding(TokenEncoding):
    """An encoding of grids, and a trained vector for the level of resolution.

    PE(p, l) = of(p) + weight[l]

    Positions are ``[*batch, seq, coordinates + 1]``, as ``posenc.positions.on_levels`` joins grids:
    the coordinates that ``of`` takes, then the number of the level. ``of`` says how the sum meets
    the embeddings. Tokens without a place get no level.

    Args:
        of: An encoding of the points of grids, as ``AxialSinusoidal(256, "deformable_detr")``.
        levels: Number of resolutions; 4 in Deformable DETR.

    Reference:
        Zhu et al. 2021, "Deformable DETR", section 4.1 and appendix A.2 (arXiv:2010.04159).

    Example:
        >>> from posenc import AxialSinusoidal
        >>> from posenc.positions import masked_grid, on_levels
        >>> points = on_levels([masked_grid(torch.ones(1, n, n).bool()) for n in (8, 4)])
        >>> LevelEmbedding(AxialSinusoidal(32, "deformable_detr"), levels=2).table(points).shape
        torch.Size([1, 80, 32])
    """

    def __init__(
        self,
        of: TokenEncoding,
        levels: int = 4,
        *,
        std: float = 1.0,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(levels=levels)
        super().__init__()
        self.of, self.levels, self.std = of, levels, std
        self.dim, self.batch_first = of.dim, of.batch_first
        self.weight = nn.Parameter(torch.empty(levels, of.dim, device=device, dtype=dtype))
        self.reset_parameters()

    @property
    def dropout(self) -> float:
        """That of ``of``, which adds the table."""
        return getattr(self.of, "dropout", 0.0)

    def reset_parameters(self) -> None:
        """Draw every level anew from N(0, std²)."""
        nn.init.normal_(self.weight, std=self.std)

    def table(
        self, positions: Int64[Tensor, "*batch seq coordinates"] | Integers, *, dtype: Dtype = None
    ) -> Embeddings:
        points = checked(positions, device=self.weight.device)
        wide = None if dtype is None else working_dtype(floating(dtype))
        rows = self.of.table(points[..., :-1], dtype=wide)
        nowhere = placeless(points)
        vectors = F.embedding(points[..., -1].masked_fill(nowhere, 0), self.weight)
        vectors = vectors.masked_fill(nowhere.unsqueeze(-1), 0.0)
        both = torch.promote_types(rows.dtype, vectors.dtype)
        return (rows.to(both) + vectors).to(rows.dtype if dtype is None else dtype)

    def encode(self, x: Embeddings, table: Float[Tensor, "*rows seq dim"]) -> Embeddings:
        return self.of.encode(x, table)
