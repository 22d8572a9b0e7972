"""Deformable DETR's level embedding: which of several resolutions a token comes from."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.guards import demand, floating, graph_looks, may_look
from posenc.positions import Integers, checked, placeless


class LevelEmbedding(TokenEncoding):
    """An encoding of grids, and a trained vector for the level of resolution.

    PE(p, l) = of(p) + weight[l]

    Positions are ``[*batch, seq, coordinates + 1]``, as ``posenc.positions.on_levels`` joins the
    grids of several resolutions: those that ``of`` takes, and the number of the level behind them.
    How the sum meets the embeddings (scale, dropout, layout) is said by ``of``. Tokens that stand
    nowhere get what ``of`` gives them, and no level.

    Args:
        of: An encoding of the points of grids, as ``AxialSinusoidal(256, "deformable_detr")``.
        levels: Number of resolutions; 4 in Deformable DETR.
        std: Standard deviation of the normal initialization; 1 there.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        TypeError: ``of`` is no encoding of tokens.
        ValueError: ``levels`` is not positive, or ``std`` is negative.

    Reference:
        Zhu et al. 2021, "Deformable DETR", section 4.1 and appendix A.2 (arXiv:2010.04159).

    Example:
        >>> from posenc import AxialSinusoidal
        >>> from posenc.positions import masked_grid, on_levels
        >>> fine, coarse = torch.ones(1, 8, 8).bool(), torch.ones(1, 4, 4).bool()
        >>> points = on_levels([masked_grid(fine), masked_grid(coarse)])
        >>> encoding = LevelEmbedding(AxialSinusoidal(32, "deformable_detr"), levels=2)
        >>> encoding.table(points).shape
        torch.Size([1, 80, 32])
    """

    keeps_norm = False
    keeps_shift = False

    def __init__(
        self,
        of: TokenEncoding,
        levels: int = 4,
        *,
        std: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        if not isinstance(of, TokenEncoding) or not of.is_pointwise:
            raise TypeError(
                f"of is {of!r}; it must be an encoding of tokens with a table of vectors, as "
                f"AxialSinusoidal(256, 'deformable_detr')."
            )
        check_whole(levels=levels)
        check_number(0.0, std=std)
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
        self,
        positions: Int64[Tensor, "*batch seq coordinates"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """The table of ``of`` plus the vector of each token's level.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: There is no such level, or ``of`` takes other coordinates.
        """
        points = checked(positions, device=self.weight.device)
        if points.ndim < 2 or points.shape[-1] < 2:
            raise ValueError(
                f"positions have shape {tuple(points.shape)}; LevelEmbedding takes coordinates and "
                f"a level, as of posenc.positions.on_levels."
            )
        wide = None if dtype is None else working_dtype(floating(dtype))
        rows = self.of.table(points[..., :-1], dtype=wide)
        if rows.shape[:-1] != points.shape[:-1]:
            raise ValueError(
                f"{self.of!r} takes positions [*batch, seq]; LevelEmbedding takes an encoding of "
                f"points [*batch, seq, axes]."
            )
        nowhere = placeless(points)
        level = points[..., -1].masked_fill(nowhere, 0)
        self._check_range(level)
        vectors = self.weight[level].masked_fill(nowhere.unsqueeze(-1), 0.0)
        both = torch.promote_types(rows.dtype, vectors.dtype)
        return (rows.to(both) + vectors).to(rows.dtype if dtype is None else dtype)

    def _check_range(self, level: Tensor) -> None:
        if graph_looks(level):
            inside = (level >= 0) & (level < self.levels)
            demand(inside.all(), f"A level is none of 0 … {self.levels - 1}.")
        if not may_look(level) or not level.numel():
            return
        first, last = (int(end) for end in level.aminmax())
        if first < 0:
            raise ValueError(
                f"Level {first} was asked for; levels count from 0 on, to {self.levels - 1}. Pass "
                f"points of levels, as of posenc.positions.on_levels."
            )
        if last >= self.levels:
            raise ValueError(
                f"Level {last} was asked for; there are {self.levels}, from 0 on. Build "
                f"LevelEmbedding(..., levels={last + 1})."
            )

    def encode(
        self, x: Float[Tensor, "*batch seq dim"], table: Float[Tensor, "*rows seq dim"]
    ) -> Float[Tensor, "*batch seq dim"]:
        """``x`` and the table, as ``of`` adds them."""
        return self.of.encode(x, table)

    def extra_repr(self) -> str:
        """The number of levels."""
        return f"levels={self.levels}"
