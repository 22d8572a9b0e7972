"""How alike one patch of a grid is to all others, by what an encoding says of them."""

from collections.abc import Sequence
from math import prod

from jaxtyping import Float64
from torch import Tensor


def patch_similarity(
    table: Tensor, size: Sequence[int], patch: Sequence[int]
) -> Float64[Tensor, "*size"]:
    """The cosine between the row of one patch and the rows of all, on the grid.

    For a rotary table, ``[seq, 2, pairs]``, it is the mean over the pairs of cos(Δ angle): what is
    left on average of the product of a query and a key that are alike.

    Args:
        table: One row a point of the grid, in the order of ``posenc.positions.grid``; all axes but
            the first are of the row.
        size: The number of points along each axis.
        patch: The point in question.

    Raises:
        TypeError: A size or a coordinate is no whole number, or the table is complex.
        ValueError: The table has other rows, there is no such point, or its row is zero.

    Example:
        >>> import torch
        >>> from posenc import AxialSinusoidal
        >>> from posenc.positions import grid
        >>> table = AxialSinusoidal(16).table(grid(3, 3))
        >>> patch_similarity(table, (3, 3), (1, 1))[1]
        tensor([0.9419, 1.0000, 0.9419], dtype=torch.float64)
    """
    if table.is_complex():
        raise TypeError(f"table is {table.dtype}; it must be real. Pass torch.view_as_real(table).")
    rows = table.detach().flatten(1).double()
    count = prod(size)
    if len(rows) != count:
        raise ValueError(f"table has {len(rows)} rows; a grid of {tuple(size)} has {count} points.")
    if len(patch) != len(size) or not all(0 <= p < n for p, n in zip(patch, size, strict=True)):
        raise ValueError(f"patch is {tuple(patch)}; it must be a point of the grid {tuple(size)}.")
    norms = rows.norm(dim=1)
    if not bool((norms > 0).all()):
        raise ValueError("A row of the table is zero, which has no direction.")
    units = (rows / norms.unsqueeze(1)).reshape(*size, -1)
    return units @ units[tuple(patch)]
