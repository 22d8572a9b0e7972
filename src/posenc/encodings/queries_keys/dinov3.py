"""DINOv3's rotary encoding: patch centers between −1 and 1, whatever the resolution."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite, log, pi
from typing import Literal, get_args

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import (
    check_choice,
    check_flag,
    check_number,
    check_positive_number,
    check_whole,
    is_row,
)
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos, stacked, unturned
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.frequencies import Powers
from posenc.frequencies.schedule import TWO_PI, Schedule, exact, is_no_number, rational
from posenc.guards import demand, floating, graph_looks, may_look, where_float64
from posenc.positions import Coordinates, Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

Normalization = Literal["separate", "min", "max"]


@dataclass(frozen=True)
class Centered(Schedule):
    """2π / (period_i · size): radians for one step of 2y + 1 − size, twice the way to a center.

    Periods are base^(4i/dim) unless given.

    Example:
        >>> Centered(8, 100.0, 14).wavelengths()
        (14.0, 140.0)
    """

    dim: int
    base: float
    size: int
    periods: tuple[Fraction, ...] | None = None

    def radians(self) -> tuple[Decimal, ...]:
        if self.periods is None:
            turns = Powers(self.base, tuple(range(0, self.dim, 4)), self.dim).radians()
        else:
            turns = tuple(1 / exact(period) for period in self.periods)
        return tuple(TWO_PI * each / self.size for each in turns)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return torch.tensor([float(w) for w in self.radians()], dtype=torch.float32)


class DINOv3Rotary(QueryKeyEncoding):
    """Pair i turns by 2π · c / period_i, c the center of a patch along y, then along x.

    c = (2y + 1) / H − 1 in a grid of H × W patches lies between −1 and 1, so an image keeps its
    angles when its resolution changes. In integers, c is (2y + 1 − H) / H, and the table is exact.
    The periods are base^(4i/d), or given.

    Positions are ``[*batch, seq, 2]`` with (y, x), as ``posenc.positions.grid(H, W)`` makes them.
    Class and register tokens are not rotated: they stand nowhere, as ``posenc.positions.prefixed``
    says it, or the patches are encoded alone.

    In training the centers may be changed at random, all of one call alike:
    c → (c + shift_axis) · jitter_axis · rescale. Then angles are float64, and each call of
    ``table`` draws anew from torch's generator.

    Args:
        head_dim: d, a multiple of 4.
        grid: H and W, in patches.
        base: 100 in DINOv3.
        periods: The periods themselves, d/4 numbers, as a checkpoint's ``rope_embed.periods``; a
            tensor of any float dtype is taken as the exact numbers that it holds. ``base`` does not
            count then.
        normalize: What c is divided by: H along y and W along x (``"separate"``, as published), or
            the smaller (``"min"``) or the larger of the two (``"max"``) along both.
        shift: Largest shift of the centers along each axis, uniform.
        jitter: Largest stretch of each axis, j: log-uniform between 1/j and j.
        rescale: Largest stretch of both axes together, likewise.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.

    Raises:
        ValueError: A width that is no multiple of 4, an empty grid, periods of another number, an
            unknown normalization, or a stretch below 1.

    Reference:
        Siméoni et al. 2025, "DINOv3", section 3.2 (arXiv:2508.10104);
        ``dinov3/layers/rope_position_encoding.py`` of facebookresearch/dinov3.

    Example:
        >>> from posenc.positions import grid
        >>> small, large = DINOv3Rotary(8, (7, 7)), DINOv3Rotary(8, (21, 21))
        >>> middle = small.table(grid(7, 7))[0], large.table(grid(21, 21))[22]
        >>> torch.equal(*middle)
        True
    """

    is_relative = True
    takes_reals = True

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
        rescale: float | None = None,
        heads_first: bool = True,
    ):
        super().__init__()
        check_whole(4, head_dim=head_dim)
        check_positive_number(base=base)
        check_choice(get_args(Normalization), normalize=normalize)
        if head_dim % 4:
            raise ValueError(
                f"head_dim is {head_dim}; two axes share its pairs, so it must be a multiple of 4."
            )
        if not is_row(grid) or len(grid) != 2:
            raise ValueError(f"grid is {grid!r}; it must be (height, width) in patches, from 1 on.")
        check_whole(**{"the height of grid": grid[0], "the width of grid": grid[1]})
        self.head_dim, self.grid, self.base = head_dim, (grid[0], grid[1]), base
        check_flag(heads_first=heads_first)
        self.heads_first = heads_first
        self.normalize: Normalization = normalize
        if shift is not None:
            check_number(0, shift=shift)
        for name, value in {"jitter": jitter, "rescale": rescale}.items():
            if value is not None:
                check_number(1, **{name: value})
        self.shift, self.jitter, self.rescale = shift, jitter, rescale
        self.sizes = _sizes(self.grid, normalize)
        quarter = head_dim // 4
        self.periods = None if periods is None else _exact_periods(periods, quarter)
        along = (Centered(head_dim, base, size, self.periods) for size in self.sizes)
        self.sincos = AxisSinCos(tuple(along), (0,) * quarter + (1,) * quarter)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq 2"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions`` (y, x), float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have two coordinates, or a point is outside of the grid, so
                that it would stand beyond the ends of −1 … 1. Real points may stand up to the edges
                of the image, half a patch beyond the outermost centers. On accelerators, where a
                look would wait, only graphs compare.
        """
        points, nowhere = among_places(checked_points(positions, 2))
        doubled = points * 2
        self._check_inside(points)
        steps = _of_each_axis(doubled, [1 - size for size in self.sizes])
        if self.training and any((self.shift, self.jitter, self.rescale)):
            return unturned(self._augmented(stacked(steps), floating(dtype)), nowhere)
        return unturned(self.sincos.table_of_axes(steps, dtype), nowhere)

    def _check_inside(self, points: Tensor | Coordinates) -> None:
        """Refuse points of another grid, whose centers would be those of no image.

        On accelerators, where a look would wait, only graphs compare.
        """
        values = points.values if isinstance(points, Coordinates) else points
        looks = graph_looks(values)
        if not looks and not (values.is_cpu and may_look(values)):
            return
        edge = 0.5 if isinstance(points, Coordinates) else 0.0
        places = in_float64(points)
        last = torch.tensor(self.grid, device=places.device) - 1
        outside = ((places < -edge) | (places > last + edge)).any(-1)
        if looks:
            demand(~outside.any(), f"A point is outside of the grid {self.grid} of DINOv3Rotary.")
        elif bool(outside.any()):
            point = ", ".join(f"{each:g}" for each in places[outside][0].tolist())
            raise ValueError(
                f"Point ({point}) is outside of {self!r}. Give points of its grid, or build it "
                f"with the grid (height, width) of this image: coordinates go from −1 to 1 over "
                f"that."
            )

    def _augmented(self, steps: Tensor | Coordinates, dtype: torch.dtype) -> Tensor:
        """The table at centers that are shifted and stretched at random."""
        made = {"dtype": torch.float64, "device": where_float64(steps.device)}
        centers = in_float64(steps) / torch.tensor(self.sizes, **made)
        if self.shift:
            centers = centers + torch.empty(2, **made).uniform_(-self.shift, self.shift)
        for stretch, axes in ((self.jitter, 2), (self.rescale, 1)):
            if stretch:
                reach = log(stretch)
                centers = centers * torch.empty(axes, **made).uniform_(-reach, reach).exp()
        periods = torch.tensor([float(period) for period in self._periods()], **made)
        angles = (2 * pi * centers.unsqueeze(-1) / periods).flatten(-2)
        return rounded(torch.stack((angles.cos(), angles.sin()), dim=-2), dtype).to(steps.device)

    def _periods(self) -> tuple[Fraction, ...] | tuple[float, ...]:
        if self.periods is not None:
            return self.periods
        return tuple(self.base ** (4 * i / self.head_dim) for i in range(self.head_dim // 4))

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
            x,
            table,
            name="DINOv3Rotary",
            head_dim=self.head_dim,
            rotated_dim=self.head_dim,
            heads_first=self.heads_first,
        )

    def extra_repr(self) -> str:
        """Width, grid, base, and what is not as published."""
        told = [str(self.head_dim), f"grid={self.grid}"]
        if self.periods is None:
            told.append(f"base={self.base}")
        else:
            told.append(f"periods={tuple(float(period) for period in self.periods)}")
        if self.normalize != "separate":
            told.append(f"normalize={self.normalize!r}")
        for name in ("shift", "jitter", "rescale"):
            if getattr(self, name) is not None:
                told.append(f"{name}={getattr(self, name)}")
        return ", ".join(told)


def _sizes(grid: tuple[int, int], normalize: Normalization) -> tuple[int, int]:
    """What the centers along y and along x are divided by."""
    if normalize == "separate":
        return grid
    size = min(grid) if normalize == "min" else max(grid)
    return size, size


def _exact_periods(given: Tensor | Sequence[float], count: int) -> tuple[Fraction, ...]:
    is_tensor = isinstance(given, Tensor)
    values = given.detach().cpu().double().flatten().tolist() if is_tensor else given
    fits = isinstance(values, Sequence) and len(values) == count
    if not fits or not all(not is_no_number(one) and one > 0 and isfinite(one) for one in values):
        raise ValueError(
            f"periods are {given!r}; give {count} positive and finite numbers, a quarter of "
            f"head_dim, as a checkpoint's rope_embed.periods."
        )
    return tuple(rational(value) for value in values)


def _of_each_axis(
    points: Tensor | Coordinates, by: Sequence[int]
) -> list[Tensor] | list[Coordinates]:
    """The coordinates of each axis, and a number added to them."""
    if isinstance(points, Coordinates):
        return list(points.shifted(by).unbind(-1))
    return [points[..., axis] + number for axis, number in enumerate(by)]
