"""LieRE: learned rotations of a whole head, or of blocks of it, for points of several axes."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.encodings.queries_keys.learned import LearnedBlocks
from posenc.encodings.told import arguments_told


class LieRE(LearnedBlocks):
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

    Attributes:
        generators: ``[axes, heads, blocks, block, block]``; the upper triangles count. At first
            uniform between 0 and 2π, as ``generator_raw_params[:, layer]`` of the authors.

    Reference:
        Ostmeier et al. 2024, "LieRE", section 3 (arXiv:2406.10322); ``models/rope_vit.py`` of
        StanfordMIMI/LieRE.

    Example:
        >>> from posenc.positions import grid
        >>> LieRE(16, axes=3, block=8).table(grid(2, 3, 4)).shape
        torch.Size([24, 1, 2, 8, 8])
    """

    is_relative = False

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
        super().__init__(head_dim, axes, head_dim if block is None else block, heads, heads_first)
        shape = (axes, heads or 1, head_dim // self.block, self.block, self.block)
        self.generators = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all matrices anew."""
        nn.init.uniform_(self.generators, 0.0, 2 * pi)

    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """A_a = U_a − U_aᵀ."""
        upper = self.generators.triu(1)
        return upper - upper.mT

    def extra_repr(self) -> str:
        return arguments_told(self, block=self.head_dim)
