"""Sines and cosines of the points of a grid, in every form that is in use."""

from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.shapes import Dtype, Embeddings
from posenc.encodings.tokens.addition import Added, Scale
from posenc.encodings.tokens.conventions import SinCosChannels
from posenc.encodings.tokens.grid_forms import GRID_FORMS, MILLION, GridForm
from posenc.encodings.told import arguments_told
from posenc.frequencies import Divided
from posenc.frequencies.schedule import PRECISION, TURN_BITS, Schedule
from posenc.guards import floating
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.product import joined
from posenc.numerics.quotients import quotient_cos_sin
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Positions, checked
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed

Stretch = int | float | Fraction


class AxialSinusoidal(Added):
    """Sines and cosines of each coordinate of a grid, side by side, added to the embeddings.

    PE(y, x) = [sin(x ω_i) | cos(x ω_i) | sin(y ω_i) | cos(y ω_i)],  ω_i = n^(−4i/d),  i < d/4

    is the form of MAE; ``posenc.encodings.tokens.grid_forms`` lists the others. Positions are
    ``[*batch, seq, axes]``, as of ``posenc.positions.grid(height, width)``, or real coordinates.
    Normalized forms (``"detr"``, ``"deformable_detr"``) take whole ``[*batch, seq, 4]`` below 2^41,
    as of ``posenc.positions.masked_grid(mask)``. Class tokens have rows of zeros.

    Args:
        dim: Width d of the embeddings.
        form: A name in ``GRID_FORMS``, or a ``GridForm`` of your own.
        axes: Number of axes; 2, for ``"cogvideox"`` 3 (t, y, x), by default.
        base: n; 20 in DAB-DETR.
        stretch: What coordinates are divided by, exactly: one number an axis or one for all.
            PixArt: grid size / base size · interpolation scale; CogVideoX: (1, 1.875, 1.875).
        arithmetic: ``"exact"``, or ``"float32"`` / ``"float32-log"`` for the common formulas;
            normalized forms are exact only, and take no stretch.

    Reference:
        He et al. 2022, "MAE" (arXiv:2111.06377), ``util/pos_embed.py`` of facebookresearch/mae;
        Carion et al. 2020, "DETR", appendix A.4 (arXiv:2005.12872); Zhu et al. 2021, "Deformable
        DETR" (arXiv:2010.04159).

    Example:
        >>> from posenc.positions import grid
        >>> AxialSinusoidal(8).table(grid(2, 2))[1]  # y = 0, x = 1
        tensor([0.8415, 0.0100, 0.5403, 0.9999, 0.0000, 0.0000, 1.0000, 1.0000])
    """

    def __init__(
        self,
        dim: int,
        form: str | GridForm = "mae",
        *,
        axes: int | None = None,
        base: float = 10_000.0,
        stretch: Stretch | Sequence[Stretch] = 1,
        scale: Scale = None,
        dropout: float = 0.0,
        batch_first: bool = True,
        arithmetic: Arithmetic = "exact",
    ):
        check_whole(dim=dim)
        check_positive_number(base=base)
        if not isinstance(form, GridForm):
            check_choice(tuple(GRID_FORMS), form=form)
            form = GRID_FORMS[form]
        axes = form.axes if axes is None else axes
        check_whole(axes=axes)
        if axes != form.axes and not form.any_axes:
            raise ValueError(f"axes is {axes}; form {form.name!r} has {form.axes}.")
        each = tuple(stretch) if isinstance(stretch, Sequence) else (stretch,) * axes
        check_positive_number(**{f"stretch[{axis}]": one for axis, one in enumerate(each)})
        if form.normalized and (arithmetic != "exact" or set(each) != {1}):
            wanted = f"form {form.name!r} is normalized and takes 'exact' and 1"
            raise ValueError(f"arithmetic is {arithmetic!r} and stretch {stretch!r}; {wanted}.")
        super().__init__(dim, scale=scale, dropout=dropout, batch_first=batch_first)
        self.form, self.axes, self.base, self.stretch = form, axes, base, each
        self.arithmetic, self.takes_reals = arithmetic, not form.normalized
        blocks = form.blocks(dim, axes, base)
        self.order = _channels(blocks, form.sines_first, dim)
        # Row p turns each pair by an angle that is linear in p; a width cut in a pair loses one.
        self.keeps_norm = dim % 2 == 0
        self.keeps_shift = self.keeps_norm and not form.normalized
        self.parts = [
            (axis, SinCos(_divided(part.cosines, each[axis]), arithmetic)) for axis, part in blocks
        ]
        # Normalized coordinates count turns, not radians.
        self.turns = [_whole_turns(sincos) if form.normalized else () for _, sincos in self.parts]

    def table(
        self, positions: Int64[Tensor, "*batch seq coordinates"] | Positions, *, dtype: Dtype = None
    ) -> Embeddings:
        dtype = floating(dtype)
        if self.form.normalized:
            points = checked_points(checked(positions), 2 * self.axes)
        else:
            points = checked_points(positions, self.axes)
        points, nowhere = among_places(points)
        columns, start = [], self.form.start[0]
        for (axis, sincos), turns in zip(self.parts, self.turns, strict=True):
            if isinstance(points, Tensor) and self.form.normalized:
                cos, sin = self._normalized(points[..., axis], points[..., axis + 2], turns, dtype)
            else:
                along = points[..., axis]
                cos, sin = cos_sin(sincos, along + start if start else along, dtype)
            columns += [sin, cos]
        table = joined(columns, -1)
        if self.order != list(range(table.shape[-1])):
            table = table[..., self.order]
        return zeroed(table, nowhere)

    def _normalized(
        self, along: Tensor, many: Tensor, turns: tuple[int, ...], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """cos and sin of (y + start) / (rows + ε) turns and of their parts."""
        start, halves = self.form.start
        numerators = (halves * along + start) * (MILLION // halves)
        return quotient_cos_sin(numerators, many * MILLION + 1, turns, dtype)

    def extra_repr(self) -> str:
        ones = (1,) * self.axes
        return arguments_told(self, form=None, axes=self.form.axes, stretch=ones)


def _divided(powers: Schedule, stretch: Stretch) -> Schedule:
    return powers if stretch == 1 else Divided(powers, (stretch,) * len(powers))


def _whole_turns(sincos: SinCos) -> tuple[int, ...]:
    """ω as turns, in units of 2^-192: what 2π · ω is as an angle."""
    with localcontext(PRECISION):
        return tuple(int((w * 2**TURN_BITS).to_integral_value()) for w in sincos.schedule.radians())


def _channels(blocks: list[tuple[int, SinCosChannels]], sines_first: bool, dim: int) -> list[int]:
    """Which of [sines, cosines] of axis after axis each channel holds."""
    sines, cosines, own, first = [], [], [], 0
    for _, part in blocks:
        count = len(part.sine_channels)
        width = 2 * count
        sines += range(first, first + count)
        cosines += range(first + count, first + width)
        here = {channel: first + i for i, channel in enumerate(part.sine_channels)}
        here |= {channel: first + count + i for i, channel in enumerate(part.cosine_channels)}
        own += [here[channel] for channel in range(width)]
        first += width
    return (sines + cosines if sines_first else own)[:dim]
