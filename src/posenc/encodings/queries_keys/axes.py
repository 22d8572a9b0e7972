"""Positions with several coordinates: each pair of channels turns by one of them."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.frequencies import Schedule
from posenc.frequencies.selected import Selected
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Integers, checked


class AxisSinCos:
    """cos and sin of p[a_i] · ω_i: pair i follows coordinate a_i of the positions.

    Args:
        schedule: ω_i, one a pair.
        axes: a_i, one a pair.
        arithmetic: As of ``SinCos``.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> sincos = AxisSinCos(Geometric(4), axes=(1, 0))
        >>> sincos.table(torch.tensor([[7, 0]]))[0, 0]
        tensor([1.0000, 0.9976])
    """

    def __init__(self, schedule: Schedule, axes: tuple[int, ...], arithmetic: Arithmetic = "exact"):
        self.schedule, self.axes = schedule, axes
        self.count = max(axes) + 1
        self.parts = []
        for axis in range(self.count):
            pairs = tuple(i for i, of in enumerate(axes) if of == axis)
            self.parts.append((axis, SinCos(Selected(schedule, pairs), arithmetic)))
        grouped = [i for axis in range(self.count) for i, of in enumerate(axes) if of == axis]
        self.order = [grouped.index(i) for i in range(len(axes))]

    def table(
        self, positions: Int64[Tensor, "*shape axes"] | Integers, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*shape 2 pairs"]:
        """cos and sin, times the attention factor of the schedule.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have one coordinate an axis.
        """
        positions = checked(positions)
        if positions.ndim < 2 or positions.shape[-1] != self.count:
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}; they must be "
                f"[*batch, seq, {self.count}], one coordinate an axis, as of posenc.positions.grid."
            )
        factor = self.schedule.attention_factor
        tables = [
            rotation_table(sincos, positions[..., axis], dtype, factor)
            for axis, sincos in self.parts
        ]
        table = torch.cat(tables, dim=-1)
        return table if self.order == sorted(self.order) else table[..., self.order]
