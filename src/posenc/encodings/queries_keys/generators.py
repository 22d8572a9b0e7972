"""Rotations of several channels at once: exponentials of skew matrices, a block of a head each."""

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.arguments import check_flag, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.rotation import checked_heads
from posenc.positions import Positions, floats
from posenc.positions.checks import checked_points


def points_of(positions: Tensor | Positions, axes: int) -> Float[Tensor, "*shape axes"]:
    """``positions`` as float64, or float32 where there is none, with one coordinate an axis.

    Raises:
        TypeError: ``positions`` are neither integers nor coordinates.
        ValueError: They do not have one coordinate an axis.

    Example:
        >>> points_of([[1, 2]], axes=2)
        tensor([[1., 2.]], dtype=torch.float64)
    """
    given = checked_points(positions, axes)
    return floats(given, torch.float32 if given.device.type == "mps" else torch.float64)


def block_rotations(
    points: Float[Tensor, "*shape axes"],
    generators: Float[Tensor, "axes heads n b b"],
    dtype: torch.dtype | None,
) -> Float[Tensor, "*shape heads n b b"]:
    """exp(Σ_a p_a A_a) for skew A_a, in the precision of the points, then rounded.

    Example:
        >>> quarter = torch.tensor([[0.0, -torch.pi / 2], [torch.pi / 2, 0.0]]).view(1, 1, 1, 2, 2)
        >>> (block_rotations(torch.tensor([[3.0]]), quarter, None).squeeze() + 2).round() - 2
        tensor([[ 0.,  1.],
                [-1.,  0.]])
    """
    exponents = torch.einsum("...a,ahnij->...hnij", points, generators.to(points.dtype))
    return torch.linalg.matrix_exp(exponents).to(dtype or torch.float32)


def rotate_blocks(
    x: Float[Tensor, "*batch _ _ head_dim"],
    table: Float[Tensor, "*rows heads n b b"],
    *,
    name: str,
    head_dim: int,
    heads_first: bool,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """Each block of a head times its matrix, in float32 at least.

    Args:
        x: Queries or keys.
        table: The matrices of each token; with one head, for all heads alike.
        name: Who rotates, for the words of an error.
        head_dim: Width that heads must have.
        heads_first: The layout of ``x``.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: Width, length or number of heads is not that of the table.
    """
    checked_heads(x, table.shape[-5], name=name, head_dim=head_dim, heads_first=heads_first)
    heads, built = x.shape[-3 if heads_first else -2], table.shape[-4]
    if built not in (1, heads):
        raise ValueError(
            f"{name} was built for {built} heads; content has {heads}. Build "
            f"{name}(heads={heads}), with as many key heads as query heads, or heads=None for all "
            f"alike."
        )
    matrices = table.transpose(-5, -4) if heads_first else table
    wide = torch.promote_types(x.dtype, table.dtype)
    blocks = x.to(wide).unflatten(-1, (table.shape[-3], -1)).unsqueeze(-1)
    return (matrices.to(wide) @ blocks).squeeze(-1).flatten(-2).to(x.dtype)


class BlockRotation(QueryKeyEncoding):
    """Heads whose blocks of channels are multiplied with a learned rotation each.

    Subclasses say in ``_exponents`` which matrices a coordinate of each axis is multiplied with.

    Args:
        head_dim: Width of a head.
        axes: Number of coordinates of a point.
        block: Channels that are rotated together.
        heads: Number of heads, each with matrices of its own; all alike if not given.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
    """

    takes_reals = True

    def __init__(self, head_dim: int, axes: int, block: int, heads: int | None, heads_first: bool):
        super().__init__()
        check_whole(2, head_dim=head_dim)
        check_whole(axes=axes)
        check_flag(heads_first=heads_first)
        self.head_dim, self.axes, self.heads_first = head_dim, axes, heads_first
        self.block = checked_block(head_dim, block)
        self.by_head = heads is not None
        if heads is not None:
            check_whole(heads=heads)
            self.heads = heads

    def _exponents(self, points: Tensor) -> Float[Tensor, "axes heads n b b"]:
        """The skew matrices, in the precision of the points where sums need it."""
        raise NotImplementedError

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
        points = points_of(positions, self.axes)
        return block_rotations(points, self._exponents(points), dtype)

    def encode_queries(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows heads n b b"],
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated.

        Raises:
            ValueError: Width, length or number of heads is not that of the table.
        """
        sizes = {"head_dim": self.head_dim, "heads_first": self.heads_first}
        return rotate_blocks(q, table, name=type(self).__name__, **sizes)

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
