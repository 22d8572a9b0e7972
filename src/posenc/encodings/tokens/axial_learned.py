"""The learned encoding of a grid by its axes: a trained vector a row, and one a column."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_flag, check_number, check_whole, is_row
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import add, checked_dropout
from posenc.guards import floating, may_look, working_dtype
from posenc.numerics.joined import joined
from posenc.positions import Integers
from posenc.positions.checks import checked
from posenc.positions.placeless import among_places, zeroed

Join = Literal["sum", "forward", "backward"]


class AxialLearned(TokenEncoding):
    """A trained vector for each row and one for each column, summed or side by side.

    ``"sum"``       PE(y, x) = tables[0][y] + tables[1][x]      NaViT, Pix2Struct, Gemma 4
    ``"forward"``   PE(y, x) = [tables[0][y] | tables[1][x]]    Reformer, with rows of text
    ``"backward"``  PE(y, x) = [tables[1][x] | tables[0][y]]    DETR, Florence-2

    and likewise for any number of axes: factorized or axial position embeddings. There are as many
    vectors as rows and columns, not as points, so grids of any aspect share them. Positions are
    ``[*batch, seq, axes]``, as ``posenc.positions.grid(H, W)`` makes them. Tokens that stand
    nowhere, as class tokens and padding, get zeros.

    Args:
        dim: Width of the embeddings. Side by side, each axis has an equal part of it, the first of
            them what is left over.
        size: Number of vectors of each axis, (H, W) for images.
        join: How the vectors of a point are joined.
        std: Standard deviation of the normal initialization.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Attributes:
        tables: The vectors of each axis, in the order of the coordinates.

    Raises:
        ValueError: A size is not positive, ``dim`` is less than the axes that share it, or another
            argument is not as said.

    Reference:
        Dehghani et al. 2023, "Patch n' Pack: NaViT", section 3.2 (arXiv:2307.06304), for the sum;
        Kitaev et al. 2020, "Reformer" (arXiv:2001.04451), and ``PositionEmbeddingLearned`` of
        facebookresearch/detr, side by side.

    Example:
        >>> from posenc.positions import grid
        >>> encoding = AxialLearned(8, (50, 50), "backward")
        >>> encoding.table(grid(3, 4)).shape
        torch.Size([12, 8])
        >>> encoding.table([[50, 0]])
        Traceback (most recent call last):
        ...
        ValueError: Point (50, 0) is outside of AxialLearned(8, size=(50, 50), join='backward'). \
Give points within its sizes, or more vectors.
    """

    keeps_norm = False
    keeps_shift = False

    def __init__(
        self,
        dim: int,
        size: Sequence[int],
        join: Join = "sum",
        *,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(dim=dim)
        check_number(0.0, std=std)
        check_choice(get_args(Join), join=join)
        self.dim, self.size, self.join, self.std = dim, _checked_size(size), join, std
        check_flag(batch_first=batch_first)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        factory = {"device": device, "dtype": dtype}
        rows = zip(self.size, _widths(dim, len(self.size), join), strict=True)
        self.tables = nn.ParameterList(
            nn.Parameter(torch.empty(length, width, **factory)) for length, width in rows
        )
        self.reset_parameters()

    @classmethod
    def from_tables(cls, tables: Sequence[Tensor], join: Join = "sum") -> "AxialLearned":
        """The encoding that trained tables are, with copies of them.

        Parameters that do not learn stay so; plain tensors say nothing of that.

        DETR's are ``[row_embeddings.weight, column_embeddings.weight]`` with ``"backward"``;
        Gemma 4's ``position_embedding_table.flip(0)``, which has x first.

        Args:
            tables: ``[length, width]`` for each coordinate of a position.
            join: As above.

        Raises:
            ValueError: They have other shapes than such an encoding, or several dtypes or devices.

        Example:
            >>> AxialLearned.from_tables([torch.zeros(50, 8), torch.zeros(40, 8)])
            AxialLearned(8, size=(50, 40))
        """
        shapes = [tuple(table.shape) for table in tables]
        if not shapes or any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"tables have shapes {shapes}; give [length, width] for each axis.")
        kinds = {f"{table.dtype} on {table.device}" for table in tables}
        if len(kinds) > 1:
            raise ValueError(f"tables are {', '.join(sorted(kinds))}; give all of them as one.")
        widths, first = [width for _, width in shapes], tables[0]
        dim = widths[0] if join == "sum" else sum(widths)
        made = cls(
            dim, [length for length, _ in shapes], join, device=first.device, dtype=first.dtype
        )
        if widths != [table.shape[1] for table in made.tables]:
            raise ValueError(
                f"tables have shapes {shapes}; with join={join!r} the widths of {dim} channels are "
                f"{[table.shape[1] for table in made.tables]}."
            )
        with torch.no_grad():
            for mine, given in zip(made.tables, tables, strict=True):
                mine.copy_(given)
        for mine, given in zip(made.tables, tables, strict=True):
            mine.requires_grad_(not isinstance(given, nn.Parameter) or given.requires_grad)
        return made

    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, std²)."""
        for table in self.tables:
            nn.init.normal_(table, std=self.std)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """The vectors of ``positions``, in the dtype of the weights unless another is asked for.

        Raises:
            TypeError: ``positions`` are not integers, or ``dtype`` is no floating one.
            ValueError: They have other axes, or a point is outside of the sizes.
        """
        own = self.tables[0].dtype
        asked = own if dtype is None else floating(dtype)
        points = checked(positions, device=self.tables[0].device)
        if points.ndim < 2 or points.shape[-1] != len(self.size):
            raise ValueError(
                f"positions have shape {tuple(points.shape)}; {self!r} takes "
                f"[*batch, seq, {len(self.size)}], as of posenc.positions.grid."
            )
        points, nowhere = among_places(points)
        self._check_range(points)
        wide = torch.promote_types(asked, own)
        # Gradients of many points are summed in one row; in 16 bits their sum would stand still.
        tables = [table.to(working_dtype(own)) for table in self.tables]
        rows = [F.embedding(points[..., a], table).to(wide) for a, table in enumerate(tables)]
        return zeroed(self._joined(rows), nowhere).to(asked)

    def _joined(self, rows: list[Tensor]) -> Tensor:
        if self.join == "sum":
            return joined(rows, 0, torch.stack).sum(0)
        return joined(rows if self.join == "forward" else rows[::-1], -1)

    def _check_range(self, points: Tensor) -> None:
        # Where values cannot be looked at, the lookups themselves complain.
        if not may_look(points) or not points.numel():
            return
        sizes = torch.tensor(self.size, device=points.device)
        outside = ((points < 0) | (points >= sizes)).any(-1)
        if outside.any():
            raise ValueError(
                f"Point {tuple(points[outside][0].tolist())} is outside of {self!r}. Give points "
                f"within its sizes, or more vectors."
            )

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``; see ``posenc.encodings.tokens.addition``.

        With ``positions`` the table holds rows that are kept, and each token takes its own;
        ``out=x`` adds in place.
        """
        return add(
            x,
            table,
            positions,
            name="AxialLearned",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
            out=out,
        )

    def extra_repr(self) -> str:
        """The arguments that say what is stored."""
        join = "" if self.join == "sum" else f", join={self.join!r}"
        return f"{self.dim}, size={self.size}{join}"

    def __repr__(self) -> str:
        return f"AxialLearned({self.extra_repr()})"


def _checked_size(size: object) -> tuple[int, ...]:
    if not is_row(size) or not size:
        raise ValueError(f"size is {size!r}; give the number of vectors of each axis, as (50, 50).")
    for axis, length in enumerate(size):
        check_whole(**{f"size[{axis}]": length})
    return tuple(int(length) for length in size)


def _widths(dim: int, axes: int, join: Join) -> list[int]:
    """The width of each axis; side by side the first of them has what is left over."""
    if join == "sum":
        return [dim] * axes
    if dim < axes:
        raise ValueError(f"dim is {dim}; {axes} axes share it, so it must be {axes} or more.")
    widths = [dim // axes + (dim % axes if place == 0 else 0) for place in range(axes)]
    return widths if join == "forward" else widths[::-1]
