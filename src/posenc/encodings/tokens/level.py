"""Deformable DETR's level embedding: which of several resolutions a token comes from."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings
from posenc.guards import floating
from posenc.positions import Integers, checked, placeless


class LevelEmbedding(TokenEncoding):
    """An encoding of grids, and a trained vector for the level of resolution.

    PE(p, l) = of(p) + weight[l]

    Positions are ``[*batch, seq, coordinates + 1]``, as ``posenc.positions.on_levels`` joins grids:
    the coordinates that ``of`` takes, then the number of the level. ``of`` says how the sum meets
    the embeddings. Tokens without a place get no level.

    Args:
        of: An encoding of the points of grids, as ``AxialSinusoidal(256, "deformable_detr")``.
        levels: Number of resolutions; 4 in Deformable DETR.
        std: Standard deviation of the normal initialization; 1 there.

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
