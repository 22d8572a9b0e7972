"""DINOv3's rotary encoding: patch centers between −1 and 1, whatever the resolution."""

from collections.abc import Sequence
from fractions import Fraction
from math import log, pi
from typing import Any, Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import (
    check_choice,
    check_multiple,
    check_number,
    check_positive_number,
    check_whole,
)
from posenc.encodings.queries_keys.axes import AxisSinCos, RotationOfAxes, Turns, unturned
from posenc.encodings.shapes import CosSin, Dtype, Scale
from posenc.frequencies import Linear, Powers, TurnsPerUnit
from posenc.guards import floating, where_float64
from posenc.kernels.rotary.front import RotaryLayout
from posenc.positions import Coordinates, Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

Normalization = Literal["separate", "min", "max"]


class DINOv3Rotary(RotationOfAxes):
    """Pair i turns by 2π · c / period_i, c the center of a patch along y, then along x.

    c = (2y + 1) / H − 1 in a grid of H × W patches lies between −1 and 1, whatever the resolution.
    The table is exact. The periods are base^(4i/d), or given. Positions are ``[*batch, seq, 2]``
    with (y, x), as of ``posenc.positions.grid(H, W)``. Class tokens are not rotated.

    In training all centers of one call may change at random: c → (c + shift_axis) · jitter_axis ·
    rescale.

    Args:
        head_dim: d, a multiple of 4.
        grid: H and W, in patches.
        periods: The periods themselves, d/4 exact numbers, as a checkpoint's
            ``rope_embed.periods``; ``base`` does not count then.
        normalize: What c is divided by: H along y and W along x (``"separate"``, as published), or
            the smaller (``"min"``) or the larger of the two (``"max"``) along both.
        shift: Largest shift of the centers along each axis, uniform.
        jitter: Largest stretch of each axis, j: log-uniform between 1/j and j.
        rescale: Largest stretch of both axes together, likewise.

    Reference:
        Siméoni et al. 2025, "DINOv3", section 3.2 (arXiv:2508.10104);
        ``dinov3/layers/rope_position_encoding.py`` of facebookresearch/dinov3.

    Example:
        >>> from posenc.positions import grid
        >>> small, large = DINOv3Rotary(8, (7, 7)), DINOv3Rotary(8, (21, 21))
        >>> torch.equal(small.table(grid(7, 7))[0], large.table(grid(21, 21))[22])
        True
    """

    def __init__(
        self,
        head_dim: int,
        grid: tuple[int, int],
        base: float = 100.0,
        *,
        periods: Tensor | Sequence[float] | None = None,
        normalize: Normalization = "separate",
        shift: float | None = None,
        jitter: float | None = None,
        rescale: Scale = None,
        heads_first: bool = True,
    ):
        super().__init__()
        height, width = grid
        check_multiple(4, head_dim=head_dim)
        check_whole(height=height, width=width)
        check_positive_number(base=base)
        check_choice(get_args(Normalization), normalize=normalize)
        check_number(0, shift=shift or 0)
        check_number(1, jitter=jitter or 1, rescale=rescale or 1)
        self.head_dim = self.rotated_dim = head_dim
        self.grid, self.base, self.heads_first = (height, width), base, heads_first
        self.normalize: Normalization = normalize
        self.shift, self.jitter, self.rescale = shift, jitter, rescale
        self.periods = None if periods is None else _exact_periods(periods, head_dim // 4)
        turns = Turns(Powers(base, tuple(range(0, head_dim, 4)), head_dim))
        if self.periods is not None:
            turns = TurnsPerUnit(tuple(1 / period for period in self.periods))
        alike = {"separate": grid, "min": (min(grid),) * 2, "max": (max(grid),) * 2}
        self.sizes = alike[normalize]
        axes = [axis for axis in (0, 1) for _ in range(head_dim // 4)]
        self.sincos = AxisSinCos([Linear(turns, size) for size in self.sizes], axes)
        self.layout = RotaryLayout(heads_first=heads_first)

    def coordinate(self, along: Any, axis: int) -> Tensor | Coordinates:
        """c · size, a whole number; frequencies are those of one step of it."""
        return 2 * along + (1 - self.sizes[axis])

    def table(
        self, positions: Int64[Tensor, "*batch seq 2"] | Positions, *, dtype: Dtype = None
    ) -> CosSin:
        if self.training and any((self.shift, self.jitter, self.rescale)):
            return self._augmented(positions, floating(dtype))
        return super().table(positions, dtype=dtype)

    def _augmented(self, positions: Tensor | Positions, dtype: torch.dtype) -> Tensor:
        """The table at centers that are shifted and stretched at random."""
        points, nowhere = among_places(checked_points(positions, 2))
        made = {"dtype": torch.float64, "device": where_float64(points.device)}
        steps = [in_float64(self.coordinate(points[..., axis], axis)) for axis in (0, 1)]
        centers = torch.stack(steps, -1) / torch.tensor(self.sizes, **made)
        if self.shift:
            centers = centers + torch.empty(2, **made).uniform_(-self.shift, self.shift)
        for stretch, axes in ((self.jitter, 2), (self.rescale, 1)):
            if stretch:
                reach = log(stretch)
                centers = centers * torch.empty(axes, **made).uniform_(-reach, reach).exp()
        exponents = range(0, self.head_dim, 4)
        periods = self.periods or [self.base ** (i / self.head_dim) for i in exponents]
        periods = torch.tensor([float(period) for period in periods], **made)
        angles = (2 * pi * centers.unsqueeze(-1) / periods).flatten(-2)
        table = rounded(torch.stack((angles.cos(), angles.sin()), dim=-2), dtype)
        return unturned(table.to(points.device), nowhere)


def _exact_periods(given: Tensor | Sequence[float], count: int) -> tuple[Fraction, ...]:
    values = given.flatten().tolist() if isinstance(given, Tensor) else given
    if len(values) != count:
        raise ValueError(f"periods are {len(values)}; there must be {count}, head_dim / 4.")
    for period in values:
        check_positive_number(period=period)
    return tuple(map(Fraction, values))
