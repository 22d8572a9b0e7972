"""Rotations of points with several coordinates: each pair of channels follows one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.rotation import rotate_heads, rotation_table, sincos_of
from posenc.encodings.shapes import CosSin, CosSinRows, Dtype, Heads, Points
from posenc.frequencies import Schedule
from posenc.frequencies.given import Selected
from posenc.frequencies.schedule import TWO_PI
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.product import joined
from posenc.numerics.sincos import Arithmetic
from posenc.positions import Coordinates, Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

Arrangement = Literal["contiguous", "interleaved"]
"""One run of pairs an axis, or pairs dealt out to the axes in turn."""


@dataclass(frozen=True)
class Turns(Schedule):
    """2π · share · ω_i: the ω_i of a schedule are turns a unit, behind ``still`` zeros."""

    of: Schedule
    share: Fraction = Fraction(1)
    still: int = 0

    def radians(self) -> tuple[Decimal, ...]:
        unit = TWO_PI * self.share.numerator / self.share.denominator
        return (Decimal(0),) * self.still + tuple(unit * each for each in self.of.radians())


class AxisSinCos:
    """cos and sin of p[a_i] · ω_i, with one schedule an axis, and ``axes`` the a_i."""

    def __init__(
        self, schedules: Sequence[Schedule], axes: Sequence[int], arithmetic: Arithmetic = "exact"
    ):
        self.schedules, self.axes = tuple(schedules), tuple(axes)
        self.count = len(self.schedules)
        self.parts = [sincos_of(schedule, arithmetic) for schedule in self.schedules]
        # Pair i stands in the joined columns of all axes where it comes among those of its own.
        grouped = sorted(range(len(self.axes)), key=lambda pair: self.axes[pair])
        self.order = [grouped.index(pair) for pair in range(len(grouped))]

    def table(
        self,
        positions: Int64[Tensor, "*shape axes"] | Positions,
        dtype: Dtype = None,
        coordinate: Callable[[Any, int], Tensor | Coordinates] = lambda along, axis: along,
        *,
        scaled: bool = True,
    ) -> Float[Tensor, "*shape 2 pairs"]:
        """cos and sin of ``coordinate`` of points, times attention factors if ``scaled``."""
        points, nowhere = among_places(checked_points(positions, self.count))
        tables = []
        for axis, sincos in enumerate(self.parts):
            factor = sincos.schedule.attention_factor if scaled else 1.0
            along = coordinate(points[..., axis], axis)
            tables.append(rotation_table(sincos, along, dtype, factor))
        table = joined(tables, -1)
        in_order = self.order == sorted(self.order)
        return unturned(table if in_order else table[..., self.order], nowhere)


class RotationOfAxes(QueryKeyEncoding):
    """Pair i rotates by c[a_i] · ω_i, as ``sincos`` says; what differs among models is data."""

    is_relative = takes_reals = True
    sincos: AxisSinCos
    layout: RotaryLayout
    rotated_dim: int

    def coordinate(self, along: Any, axis: int) -> Tensor | Coordinates:
        """c of the positions along an axis: these themselves, or where they stand in a grid."""
        return along

    def table(self, positions: Points, *, dtype: Dtype = None) -> CosSin:
        return self.sincos.table(positions, dtype, self.coordinate)

    def encode_queries(self, q: Heads, table: CosSinRows) -> Heads:
        return rotate_heads(q, table, self.layout, self.head_dim, self.rotated_dim)


def unturned(
    table: Float[Tensor, "*shape"], nowhere: Bool[Tensor, "*tokens"] | None, heads: bool = False
) -> Float[Tensor, "*shape"]:
    """The table with cos 1 and sin 0 for tokens that stand nowhere, at will for each head."""
    if nowhere is None:
        return table
    cos, sin = table.unbind(-3 if heads else -2)
    still = torch.stack((torch.ones_like(cos), torch.zeros_like(sin)), dim=-3 if heads else -2)
    axes = [1] * (table.ndim - nowhere.ndim)
    return torch.where(nowhere.reshape(*nowhere.shape, *axes), still, table)


def of_each_axis(schedule: Schedule, axes: Sequence[int]) -> tuple[Schedule, ...]:
    """The frequencies of one schedule, shared out: those of each axis as a schedule."""
    return tuple(
        Selected(schedule, tuple(i for i, of in enumerate(axes) if of == axis))
        for axis in range(max(axes) + 1)
    )
