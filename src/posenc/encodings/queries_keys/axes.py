"""Positions with several coordinates: each pair of channels turns by one of them."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.frequencies import Schedule
from posenc.frequencies.given import Selected
from posenc.numerics.joined import joined
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Coordinates, Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

Arrangement = Literal["contiguous", "interleaved"]
"""One run of pairs an axis, or pairs dealt out to the axes in turn."""


class AxisSinCos:
    """cos and sin of p[a_i] · ω_i: pair i follows coordinate a_i of the positions.

    Args:
        schedules: One an axis; the pairs of an axis take its frequencies in their order, and its
            attention factor.
        axes: a_i, one a pair.
        arithmetic: As of ``SinCos``.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> sincos = AxisSinCos((Geometric(2), Geometric(2, 100.0)), axes=(1, 0))
        >>> sincos.table(torch.tensor([[7, 0]]))[0, 0]
        tensor([1.0000, 0.7539])
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        axes: Sequence[int],
        arithmetic: Arithmetic = "exact",
    ):
        self.schedules, self.axes = tuple(schedules), tuple(axes)
        self.count = len(self.schedules)
        self.parts = [SinCos(schedule, arithmetic) for schedule in self.schedules]
        # Pair i stands in the joined columns of all axes where it comes among those of its own.
        grouped = sorted(range(len(self.axes)), key=lambda pair: self.axes[pair])
        self.order = [grouped.index(pair) for pair in range(len(grouped))]

    def table(
        self,
        positions: Int64[Tensor, "*shape axes"] | Positions,
        dtype: torch.dtype | None = None,
        *,
        scaled: bool = True,
    ) -> Float[Tensor, "*shape 2 pairs"]:
        """cos and sin, times the attention factor of the schedule of each axis if ``scaled``.

        Tokens that stand nowhere, as ``posenc.positions.prefixed`` puts them, are not turned.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have one coordinate an axis.
        """
        positions, nowhere = among_places(checked_points(positions, self.count))
        axes = [positions[..., axis] for axis in range(self.count)]
        return unturned(self.table_of_axes(axes, dtype, scaled=scaled), nowhere)

    def table_of_axes(
        self,
        axes: Sequence[Int64[Tensor, "*shape"] | Coordinates],
        dtype: torch.dtype | None = None,
        *,
        scaled: bool = True,
    ) -> Float[Tensor, "*shape 2 pairs"]:
        """``table`` of positions that are apart already, one axis each, and stand somewhere."""
        tables = [
            rotation_table(
                sincos, along, dtype, sincos.schedule.attention_factor if scaled else 1.0
            )
            for sincos, along in zip(self.parts, axes, strict=True)
        ]
        table = joined(tables, -1)
        return table if self.order == sorted(self.order) else table[..., self.order]


def unturned(
    table: Float[Tensor, "*shape"], nowhere: Bool[Tensor, "*tokens"] | None, heads: bool = False
) -> Float[Tensor, "*shape"]:
    """The table with cos 1 and sin 0 for tokens that stand nowhere; with ``heads``, for each head.

    Example:
        >>> unturned(torch.tensor([[[0.6], [0.8]]]), torch.tensor([True]))
        tensor([[[1.],
                 [0.]]])
    """
    if nowhere is None:
        return table
    cos, sin = table.unbind(-3 if heads else -2)
    still = torch.stack((torch.ones_like(cos), torch.zeros_like(sin)), dim=-3 if heads else -2)
    axes = [1] * (table.ndim - nowhere.ndim)
    return torch.where(nowhere.reshape(*nowhere.shape, *axes), still, table)


def stacked(axes: Sequence[Tensor | Coordinates]) -> Tensor | Coordinates:
    """One tensor, or coordinates, an axis, put together as positions with so many axes.

    Example:
        >>> stacked([Coordinates([0.5]), Coordinates([2])]).scale
        (Fraction(1, 2), Fraction(1, 1))
    """
    if isinstance(axes[0], Coordinates):
        return Coordinates.stack(axes, dim=-1)  # type: ignore[arg-type]
    return torch.stack(axes, dim=-1)  # type: ignore[arg-type]


def of_each_axis(schedule: Schedule, axes: Sequence[int]) -> tuple[Schedule, ...]:
    """The frequencies of one schedule, shared out: those of each axis as a schedule.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> [len(each) for each in of_each_axis(Geometric(8), (0, 1, 0, 0))]
        [3, 1]
    """
    return tuple(
        Selected(schedule, tuple(i for i, of in enumerate(axes) if of == axis))
        for axis in range(max(axes) + 1)
    )
