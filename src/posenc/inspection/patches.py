"""How alike one patch of a grid is to all others, by what an encoding says of them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor


def patch_similarity(
    table: Tensor, size: Sequence[int], patch: Sequence[int]
) -> Float64[Tensor, "*size"]:
    """The cosine between the row of one patch and the rows of all, on the grid.

    For a rotary table, ``[seq, 2, pairs]``, it is the mean over the pairs of cos(Δ angle): what is
    left on average of the product of a query and a key that are alike.

    Args:
        table: One row a point of the grid, in the order of ``posenc.positions.grid``.
        size: The number of points along each axis.
        patch: The point in question.

    Example:
        >>> from posenc import AxialSinusoidal
        >>> from posenc.positions import grid
        >>> table = AxialSinusoidal(16).table(grid(3, 3))
        >>> patch_similarity(table, (3, 3), (1, 1))[1]
        tensor([0.9419, 1.0000, 0.9419], dtype=torch.float64)
    """
    real = torch.view_as_real(table) if table.is_complex() else table
    rows = real.detach().flatten(1).double()
    units = (rows / rows.norm(dim=1, keepdim=True)).reshape(*size, -1)
    return units @ units[tuple(patch)]
