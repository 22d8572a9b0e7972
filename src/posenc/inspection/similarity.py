"""How alike positions are: dot products, the closest pair, and patches of a grid."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from posenc.encodings.base import TokenEncoding
from posenc.positions import consecutive

BLOCK = 1024  # rows of the Gram matrix that are held at a time


@dataclass(frozen=True)
class ClosestPair:
    """The two positions whose encodings lie nearest to each other."""

    first: int  #: the smaller position
    second: int  #: the larger one
    distance: float  #: the Euclidean distance between their rows


def dot_products(
    encoding: TokenEncoding, length: int, *, start: int = 0
) -> Float[Tensor, "length length"]:
    """PE(p) · PE(q) for all pairs of so many positions, in float64.

    Example:
        >>> from posenc import Sinusoidal
        >>> dot_products(Sinusoidal(8), 3).diagonal().round(decimals=12)
        tensor([4., 4., 4.], dtype=torch.float64)
    """
    rows = _rows(encoding, length, start)
    return rows @ rows.mT


def dot_product_profile(
    encoding: TokenEncoding, length: int, *, position: int = 0
) -> Float[Tensor, "length"]:
    """PE(p) · PE(p + k) for k = 0 … length − 1, in float64.

    Where sines and cosines come in pairs it is Σ_i cos(k ω_i), whatever p.

    Example:
        >>> from posenc import Sinusoidal
        >>> near, far = (dot_product_profile(Sinusoidal(8), 5, position=p) for p in (0, 10**6))
        >>> bool((near - far).abs().max() < 1e-12)
        True
    """
    rows = _rows(encoding, length, position)
    return rows @ rows[0]


def closest_pair(encoding: TokenEncoding, length: int) -> ClosestPair:
    """The closest pair among positions 0 … length − 1.

    Where a shift is one rotation (``keeps_shift`` and ``keeps_norm``), distances depend on the
    offset alone, and one row tells; otherwise all rows are compared, some at a time.

    Example:
        >>> from posenc import Sinusoidal
        >>> pair = closest_pair(Sinusoidal(2), 45)  # 44 is nearly 7 turns of 2π
        >>> pair.first, pair.second, round(pair.distance, 4)
        (0, 44, 0.0177)
    """
    rows = _rows(encoding, length, 0)
    is_exact = getattr(encoding, "arithmetic", "exact") == "exact"
    if is_exact and encoding.keeps_shift and encoding.keeps_norm:
        away = (rows[1:] - rows[0]).norm(dim=1)
        offset = int(away.argmin())
        return ClosestPair(0, offset + 1, away[offset].item())
    best = ClosestPair(0, 1, float("inf"))
    for begin in range(0, length, BLOCK):
        block = rows[begin : begin + BLOCK]
        away = torch.cdist(block, rows[begin:], compute_mode="donot_use_mm_for_euclid_dist")
        away[torch.ones_like(away, dtype=torch.bool).tril()] = torch.inf
        one, other = divmod(int(away.argmin()), away.shape[1])
        if away[one, other] < best.distance:
            best = ClosestPair(begin + one, begin + other, away[one, other].item())
    return best


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


def _rows(encoding: TokenEncoding, length: int, start: int) -> Tensor:
    return encoding.table(consecutive(length, start=start), dtype=torch.float64).detach()
