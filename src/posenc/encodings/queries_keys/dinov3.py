"""DINOv3's rotary encoding: patch centers between −1 and 1, whatever the resolution."""

from dataclasses import dataclass
from decimal import Decimal

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.frequencies import Powers
from posenc.frequencies.schedule import TWO_PI, Schedule
from posenc.positions import checked


@dataclass(frozen=True)
class Centered(Schedule):
    """2π · base^(−4i/dim) / size: radians for one step of 2y + 1 − size, twice the way to a center.

    Example:
        >>> Centered(8, 100.0, (14, 14)).wavelengths()
        (14.0, 140.0, 14.0, 140.0)
    """

    dim: int
    base: float
    sizes: tuple[int, int]

    def radians(self) -> tuple[Decimal, ...]:
        powers = Powers(self.base, tuple(range(0, self.dim, 4)), self.dim).radians()
        return tuple(TWO_PI * w / size for size in self.sizes for w in powers)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return torch.tensor([float(w) for w in self.radians()], dtype=torch.float32)


class DINOv3Rotary(QueryKeyEncoding):
    """Pair i turns by 2π · c · base^(−4i/d), c the center of a patch along y, then along x.

    c = (2y + 1) / H − 1 in a grid of H × W patches lies between −1 and 1, so an image keeps its
    angles when its resolution changes. In integers, c is (2y + 1 − H) / H, and the table is exact.

    Positions are ``[*batch, seq, 2]`` with (y, x), as ``posenc.positions.grid(H, W)`` makes them.
    Class and register tokens are not rotated: encode the patches alone.

    Args:
        head_dim: d, a multiple of 4.
        grid: H and W, in patches.
        base: 100 in DINOv3.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.

    Raises:
        ValueError: A width that is no multiple of 4, or an empty grid.

    Reference:
        Siméoni et al. 2025, "DINOv3", section 3.2 (arXiv:2508.10104).

    Example:
        >>> from posenc.positions import grid
        >>> small, large = DINOv3Rotary(8, (7, 7)), DINOv3Rotary(8, (21, 21))
        >>> middle = small.table(grid(7, 7))[0], large.table(grid(21, 21))[22]
        >>> torch.equal(*middle)
        True
    """

    is_relative = True

    def __init__(
        self,
        head_dim: int,
        grid: tuple[int, int],
        base: float = 100.0,
        *,
        heads_first: bool = True,
    ):
        super().__init__()
        if head_dim < 4 or head_dim % 4:
            raise ValueError(
                f"head_dim is {head_dim}; two axes share its pairs, so it must be a multiple of 4."
            )
        if len(grid) != 2 or min(grid) < 1:
            raise ValueError(f"grid is {grid}; it must be (height, width) in patches, from 1 on.")
        self.head_dim, self.grid, self.base = head_dim, (grid[0], grid[1]), base
        self.heads_first = heads_first
        quarter = head_dim // 4
        self.sincos = AxisSinCos(
            Centered(head_dim, base, self.grid), (0,) * quarter + (1,) * quarter
        )

    def table(
        self, positions: Int64[Tensor, "*batch seq 2"], *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions`` (y, x), float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have two coordinates.
        """
        doubled = 2 * checked(positions) + 1
        if doubled.shape[-1] == 2:
            height, width = self.grid
            doubled = torch.stack((doubled[..., 0] - height, doubled[..., 1] - width), dim=-1)
        return self.sincos.table(doubled, dtype)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated."""
        return self._rotate(q, table)

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self._rotate(k, table)

    def _rotate(self, x: Tensor, table: Tensor) -> Tensor:
        return rotate_heads(
            x, table, name="DINOv3Rotary", head_dim=self.head_dim, heads_first=self.heads_first
        )

    def extra_repr(self) -> str:
        """Width, grid and base."""
        return f"{self.head_dim}, grid={self.grid}, base={self.base}"
