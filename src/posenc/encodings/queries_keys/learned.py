"""What learned rotations of points share: angles and matrices in float64, rounded once."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_flag, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotation import check_rows
from posenc.guards import floating
from posenc.numerics.product import product
from posenc.positions import Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class LearnedRotation(QueryKeyEncoding):
    """Heads rotated at points ``[*batch, seq, axes]`` by what is learned.

    A learned number has no exact value to keep, so angles and matrices are float64. Tokens that
    stand nowhere, as ``posenc.positions.prefixed`` puts them, are at 0, where nothing is rotated.
    """

    is_relative = True
    takes_reals = True

    def __init__(self, head_dim: int, axes: int, heads_first: bool, least: int = 2):
        super().__init__()
        check_whole(least, head_dim=head_dim)
        check_whole(axes=axes)
        check_flag(heads_first=heads_first)
        self.head_dim, self.axes, self.heads_first = head_dim, axes, heads_first

    def points(self, positions: Tensor | Positions) -> Float[Tensor, "*shape axes"]:
        """``positions`` as float64, on the CPU where their device has none."""
        points, _ = among_places(checked_points(positions, self.axes))
        return in_float64(points)


class LearnedAngles(LearnedRotation):
    """Pairs rotated by learned angles."""

    cos_axis = -2
    """The axis of a table that tells cosines from sines."""

    @abstractmethod
    def angles(self, points: Float[Tensor, "*shape axes"]) -> Float[Tensor, "*shape _"]:
        """The angle of each pair at each point."""

    def table(
        self, positions: Tensor | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "..."]:
        """cos and sin at ``positions [*batch, seq, axes]``, float32 unless another is asked for."""
        angles = self.angles(self.points(positions))
        table = torch.stack((angles.cos(), angles.sin()), dim=self.cos_axis)
        return table.to(floating(dtype)).to(next(self.parameters()).device)


class LearnedBlocks(LearnedRotation):
    """Blocks of channels multiplied with exp(Σ_a p_a A_a), where the A_a are learned and skew."""

    def __init__(self, head_dim: int, axes: int, block: int, heads: int | None, heads_first: bool):
        super().__init__(head_dim, axes, heads_first)
        check_whole(2, block=block)
        if head_dim % block:
            raise ValueError(f"block is {block}; it must divide head_dim, {head_dim}.")
        self.block, self.by_head = block, heads is not None
        if heads is not None:
            check_whole(heads=heads)
            self.heads = heads

    @abstractmethod
    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """The A_a; with one head, for all heads alike."""

    def table(
        self, positions: Tensor | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*rows heads n b b"]:
        """The matrices of each token at ``positions [*batch, seq, axes]``.

        They are exponentials in float64, exact to float32 up to turns of 2^24 radians.
        """
        points, generators = self.points(positions), in_float64(self.generators_of_axes())
        exponents = torch.einsum("...a,ahnij->...hnij", points, generators)
        rotations = torch.linalg.matrix_exp(exponents).to(floating(dtype))
        return rotations.to(next(self.parameters()).device)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows heads n b b"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated, each block by its matrix, in float32 at least."""
        heads = q.shape[-3 if self.heads_first else -2] if self.by_head else 1
        row = (heads, self.head_dim // self.block, self.block, self.block)
        check_rows(q, table, row, self.heads_first)
        matrices = table.transpose(-5, -4) if self.heads_first else table
        wide = torch.promote_types(working_dtype(q.dtype), table.dtype)
        blocks = q.to(wide).unflatten(-1, (table.shape[-3], -1)).unsqueeze(-1)
        return product(matrices.to(wide), blocks).squeeze(-1).flatten(-2).to(q.dtype)
