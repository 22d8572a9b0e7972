"""LieRE: learned rotations of a whole head, or of blocks of it, for points of several axes."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_flag, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.generators import block_rotations, points_of, rotate_blocks
from posenc.positions import Positions


class LieRE(QueryKeyEncoding):
    """Heads are multiplied with exp(Σ_a p_a A_a), where the A_a are learned skew matrices.

    A_a = U_a − U_aᵀ, where U_a is the upper triangle of what is learned. The matrices of two axes
    need not commute, so that the product of a query and a key depends on both points, not on their
    difference alone; norms are kept. Along one axis, or with blocks of two channels, they do
    commute. Exponentials are float64, rounded once.

    Args:
        head_dim: d.
        axes: Number of coordinates of a point. The authors scale each to run from 0 to 1 over the
            images of training: ``Coordinates(grid(14, 14), scale=Fraction(1, 13))``.
        block: Channels that are rotated together, a divisor of d; all of a head if not given.
        heads: Number of heads, each with matrices of its own; all alike if not given.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Attributes:
        generators: ``[axes, heads, blocks, block, block]``; the upper triangles count. At first
            uniform between 0 and 2π, as ``generator_raw_params[:, layer]`` of the authors.

    Raises:
        ValueError: A number is no whole one, or ``block`` does not divide the width.

    Reference:
        Ostmeier et al. 2024, "LieRE", section 3 (arXiv:2406.10322); ``models/rope_vit.py`` of
        StanfordMIMI/LieRE.

    Example:
        >>> from posenc.positions import grid
        >>> LieRE(16, axes=3, block=8).table(grid(2, 3, 4)).shape
        torch.Size([24, 1, 2, 8, 8])
    """

    is_relative = False
    takes_reals = True

    def __init__(
        self,
        head_dim: int,
        axes: int = 2,
        block: int | None = None,
        heads: int | None = None,
        *,
        heads_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(2, head_dim=head_dim)
        check_whole(axes=axes)
        self.block = checked_block(head_dim, head_dim if block is None else block)
        self.by_head = heads is not None
        if heads is not None:
            check_whole(heads=heads)
            self.heads = heads
        check_flag(heads_first=heads_first)
        self.head_dim, self.axes, self.heads_first = head_dim, axes, heads_first
        shape = (axes, heads or 1, head_dim // self.block, self.block, self.block)
        self.generators = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all matrices anew."""
        nn.init.uniform_(self.generators, 0.0, 2 * pi)

    def table(
        self, positions: Tensor | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*rows heads n b b"]:
        """The rotation of each token, float32 unless another dtype is asked for.

        Args:
            positions: ``[*batch, seq, axes]``, whole numbers or coordinates.
            dtype: That of the matrices.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have one coordinate an axis.
        """
        upper = self.generators.triu(1)
        return block_rotations(points_of(positions, self.axes), upper - upper.mT, dtype)

    def encode_queries(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows heads n b b"],
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated.

        Raises:
            ValueError: Width, length or number of heads is not that of the table.
        """
        return rotate_blocks(
            q,
            table,
            name="LieRE",
            built=self.heads if self.by_head else 1,
            block=self.block,
            head_dim=self.head_dim,
            heads_first=self.heads_first,
        )

    def encode_keys(
        self,
        k: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows heads n b b"],
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self.encode_queries(k, table)

    def extra_repr(self) -> str:
        """Sizes."""
        told = f"{self.head_dim}, axes={self.axes}, block={self.block}"
        return f"{told}, heads={self.heads}" if self.by_head else told


def checked_block(head_dim: int, block: int) -> int:
    """A number of channels that divides a head.

    Raises:
        ValueError: It does not.

    Example:
        >>> checked_block(64, 24)
        Traceback (most recent call last):
        ...
        ValueError: block is 24; head_dim is 64. Give a divisor of it from 2 on, as 8.
    """
    check_whole(2, block=block)
    if head_dim % block:
        raise ValueError(
            f"block is {block}; head_dim is {head_dim}. Give a divisor of it from 2 on, as 8."
        )
    return block
