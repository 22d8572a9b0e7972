"""The learned encoding of a grid by its axes: a trained vector a row, and one a column."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholePoints
from posenc.encodings.tokens.addition import Added
from posenc.guards import floating
from posenc.numerics.joined import joined
from posenc.positions import checked
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed

Join = Literal["sum", "forward", "backward"]


class AxialLearned(Added):
    """A trained vector for each row and one for each column, summed or side by side.

    ``"sum"``       PE(y, x) = tables[0][y] + tables[1][x]      NaViT, Pix2Struct, Gemma 4
    ``"forward"``   PE(y, x) = [tables[0][y] | tables[1][x]]    Reformer, with rows of text
    ``"backward"``  PE(y, x) = [tables[1][x] | tables[0][y]]    DETR, Florence-2

    and likewise for any number of axes. Positions are ``[*batch, seq, axes]``, as of
    ``posenc.positions.grid(H, W)``. Class tokens and padding get zeros.

    Args:
        dim: Width of the embeddings. Side by side, axes share it equally; the first has the rest.
        size: Number of vectors of each axis, (H, W) for images.

    Attributes:
        tables: The vectors of each axis, in the order of the coordinates.

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

    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, std²)."""
        for table in self.tables:
            nn.init.normal_(table, std=self.std)

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
