"""Learned rotations of blocks of channels: LieRE, and ComRoPE, whose matrices commute."""

from abc import abstractmethod
from math import pi
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice, check_multiple, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.learned import LearnedRotation
from posenc.encodings.queries_keys.rotation import check_rows
from posenc.encodings.shapes import Device, Dtype, Heads
from posenc.encodings.told import arguments_told
from posenc.guards import floating
from posenc.numerics.product import product
from posenc.positions import Positions, in_float64


class LearnedBlocks(LearnedRotation):
    """Blocks of channels multiplied with exp(Σ_a p_a A_a), where the A_a are learned and skew."""

    def __init__(self, head_dim: int, axes: int, block: int, heads: int | None, heads_first: bool):
        super().__init__(head_dim, axes, heads_first)
        check_whole(2, block=block)
        check_multiple(block, head_dim=head_dim)
        self.block, self.by_head = block, heads is not None
        if heads is not None:
            check_whole(heads=heads)
            self.heads = heads

    @abstractmethod
    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """The A_a; with one head, for all heads alike."""

    def table(
        self, positions: Tensor | Positions, *, dtype: Dtype = None
    ) -> Float[Tensor, "*rows heads n b b"]:
        """The matrices of each token, exact to float32 up to turns of 2^24 radians."""
        points, generators = self.points(positions), in_float64(self.generators_of_axes())
        exponents = torch.einsum("...a,ahnij->...hnij", points, generators)
        rotations = torch.linalg.matrix_exp(exponents).to(floating(dtype))
        return rotations.to(next(self.parameters()).device)

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows heads n b b"]) -> Heads:
        heads = q.shape[-3 if self.heads_first else -2] if self.by_head else 1
        row = (heads, self.head_dim // self.block, self.block, self.block)
        check_rows(q, table, row, self.heads_first)
        matrices = table.transpose(-5, -4) if self.heads_first else table
        wide = torch.promote_types(working_dtype(q.dtype), table.dtype)
        blocks = q.to(wide).unflatten(-1, (table.shape[-3], -1)).unsqueeze(-1)
        return product(matrices.to(wide), blocks).squeeze(-1).flatten(-2).to(q.dtype)


class LieRE(LearnedBlocks):
    """Heads are multiplied with exp(Σ_a p_a A_a), where the A_a are learned skew matrices.

    A_a = U_a − U_aᵀ, with U_a an upper triangle of ``generators``, ``[axes, heads, blocks, block,
    block]``, at first uniform between 0 and 2π. Matrices of two axes need not commute: a product
    then depends on both points, not on their difference alone. Norms are kept. Exponentials are
    float64, rounded once.

    Args:
        axes: Number of coordinates of a point. The authors scale each to run from 0 to 1:
            ``Coordinates(grid(14, 14), scale=Fraction(1, 13))``.
        block: Channels that are rotated together, a divisor of d; all of a head if not given.
        heads: Number of heads, each with matrices of its own; all alike if not given.

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
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, axes, head_dim if block is None else block, heads, heads_first)
        shape = (axes, heads or 1, head_dim // self.block, self.block, self.block)
        self.generators = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        nn.init.uniform_(self.generators, 0.0, 2 * pi)

    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """A_a = U_a − U_aᵀ."""
        upper = self.generators.triu(1)
        return upper - upper.mT

    def extra_repr(self) -> str:
        return arguments_told(self, block=self.head_dim)


Variant = Literal["LD", "AP"]


class ComRoPE(LearnedBlocks):
    """Blocks of heads are multiplied with exp(Σ_a p_a A_a), where the A_a commute.

    A = F − Fᵀ with a learned matrix F for each block (``freqs``, ``[heads, blocks, block,
    block]``). ``"LD"``, linearly dependent: A_a = m_a · A with a learned m_a for each axis and
    block (``multiplier``). ``"AP"``, axial partition: block n follows axis n mod axes alone.
    Products depend on the difference of points; norms are kept. Exponentials are float64.

    Args:
        axes: Number of coordinates of a point. The authors put the middles of patches between 0 and
            1: ``Coordinates(2 * grid(14, 14) + 1, scale=Fraction(1, 28))``.
        heads: Number of heads, each with matrices of its own; all alike if not given.
        variant: ``"LD"`` or ``"AP"``; for this the number of blocks is a multiple of the axes.
        std: Standard deviation of F at first.

    Reference:
        Yu et al. 2025, "ComRoPE", section 4 (arXiv:2506.03737); ``model.py`` of Longin-Yu/ComRoPE.

    Example:
        >>> from posenc.positions import grid
        >>> ComRoPE(16, axes=2, block=4, heads=3).table(grid(2, 5)).shape
        torch.Size([10, 3, 4, 4, 4])
    """

    def __init__(
        self,
        head_dim: int,
        axes: int = 2,
        block: int = 8,
        heads: int | None = None,
        variant: Variant = "LD",
        *,
        std: float = 1.0,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, axes, block, heads, heads_first)
        check_choice(get_args(Variant), variant=variant)
        blocks = head_dim // block
        if variant == "AP":
            check_multiple(axes, blocks=blocks)
        self.variant: Variant = variant
        self.std = std
        factory = {"device": device, "dtype": dtype}
        self.freqs = nn.Parameter(torch.empty(heads or 1, blocks, block, block, **factory))
        if variant == "LD":
            self.multiplier = nn.Parameter(torch.empty(axes, blocks, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        nn.init.normal_(self.freqs, std=self.std)
        if self.variant == "LD":
            nn.init.normal_(self.multiplier)

    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """How much of each block follows each axis, times F − Fᵀ."""
        matrices = in_float64(self.freqs)  # narrower numbers would round the difference
        if self.variant == "LD":
            shares = in_float64(self.multiplier)
        else:
            repeats = matrices.shape[1] // self.axes
            shares = torch.eye(self.axes, dtype=matrices.dtype, device=matrices.device)
            shares = shares.repeat(1, repeats)
        return shares[:, None, :, None, None] * (matrices - matrices.mT)
