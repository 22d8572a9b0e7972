"""Rotations of several channels at once: exponentials of skew matrices, a block of a head each."""

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.rotation import check_fit
from posenc.guards import demand, floating, graph_looks, may_look
from posenc.numerics.product import product
from posenc.positions import Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

MOST_RADIANS = 2**24
"""Up to so far an exponential errs by less than the last digit of a float32."""


def points_of(positions: Tensor | Positions, axes: int) -> Float[Tensor, "*shape axes"]:
    """``positions`` as float64, on the CPU where there is none, with one coordinate an axis.

    Tokens that stand nowhere, as ``posenc.positions.prefixed`` puts them, are at 0, where nothing
    is rotated.

    Raises:
        TypeError: ``positions`` are neither integers nor coordinates.
        ValueError: They do not have one coordinate an axis.

    Example:
        >>> points_of([[1, 2]], axes=2)
        tensor([[1., 2.]], dtype=torch.float64)
    """
    points, _ = among_places(checked_points(positions, axes))
    return in_float64(points)


def block_rotations(
    points: Float[Tensor, "*shape axes"],
    generators: Float[Tensor, "axes heads n b b"],
    dtype: torch.dtype | None,
) -> Float[Tensor, "*shape heads n b b"]:
    """exp(Σ_a p_a A_a) for skew A_a, in float64, then rounded.

    Raises:
        ValueError: A point is so far that float64 keeps too few digits of its turn; inside of
            graphs, and on accelerators, where a look would wait, that is not seen.

    Example:
        >>> quarter = torch.tensor([[0.0, -torch.pi / 2], [torch.pi / 2, 0.0]]).view(1, 1, 1, 2, 2)
        >>> (block_rotations(torch.tensor([[3.0]]), quarter, None).squeeze() + 2).round() - 2
        tensor([[ 0.,  1.],
                [-1.,  0.]])
    """
    exponents = torch.einsum("...a,ahnij->...hnij", in_float64(points), in_float64(generators))
    _check_reach(exponents)
    return torch.linalg.matrix_exp(exponents).to(floating(dtype)).to(generators.device)


def _check_reach(exponents: Float[Tensor, "*shape b b"]) -> None:
    if graph_looks(exponents):
        near = (_turns(exponents) <= MOST_RADIANS).all()
        demand(near, f"A point turns a block by more than {MOST_RADIANS} radians.")
    if not (exponents.is_cpu and may_look(exponents) and exponents.numel()):
        return
    most = float(_turns(exponents).amax())
    if most > MOST_RADIANS:
        raise ValueError(
            f"A point turns a block by up to {most:.3g} radians, of which float64 keeps too few "
            f"digits; up to {MOST_RADIANS} are taken. Give points in coarser units, as "
            f"Coordinates(grid(14, 14), scale=Fraction(1, 13))."
        )


def _turns(exponents: Float[Tensor, "*shape b b"]) -> Float[Tensor, "*shape b"]:
    """How far, in radians and at most, each row turns."""
    return exponents.detach().abs().sum(-1)


def rotate_blocks(
    x: Float[Tensor, "*batch _ _ head_dim"],
    table: Float[Tensor, "*rows heads n b b"],
    *,
    name: str,
    built: int,
    block: int,
    head_dim: int,
    heads_first: bool,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """Each block of a head times its matrix, in float32 at least.

    Args:
        x: Queries or keys.
        table: The matrices of each token; with one head, for all heads alike.
        name: Who rotates, for the words of an error.
        built: How many heads it was built for; 1 for all heads alike.
        block: Channels of a block.
        head_dim: Width that heads must have.
        heads_first: The layout of ``x``.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: Width, length or number of heads is not that of the table.
    """
    row = (built, head_dim // block, block, block)
    check_fit(x, table, row, name=name, head_dim=head_dim, heads_first=heads_first)
    heads = x.shape[-3 if heads_first else -2]
    if built not in (1, heads):
        raise ValueError(
            f"{name} was built for {built} heads; content has {heads}. Build "
            f"{name}(heads={heads}), with as many key heads as query heads, or heads=None for all "
            f"alike."
        )
    matrices = table.transpose(-5, -4) if heads_first else table
    wide = torch.promote_types(working_dtype(x.dtype), table.dtype)
    blocks = x.to(wide).unflatten(-1, (table.shape[-3], -1)).unsqueeze(-1)
    return product(matrices.to(wide), blocks).squeeze(-1).flatten(-2).to(x.dtype)
