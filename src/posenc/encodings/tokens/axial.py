"""Sines and cosines of the points of a grid, in every form that is in use."""

from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_choice, check_flag, check_positive_number, check_whole
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import Scale, add, checked_dropout, factor
from posenc.encodings.tokens.conventions import SinCosChannels
from posenc.encodings.tokens.grid_forms import ELSEWHERE, GRID_FORMS, MILLION, GridForm
from posenc.frequencies import Divided
from posenc.frequencies.schedule import PRECISION, TURN_BITS, Schedule
from posenc.guards import floating
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.joined import joined
from posenc.numerics.quotients import quotient_cos_sin
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions import Coordinates, Positions, checked
from posenc.positions.checks import shifted
from posenc.positions.placeless import among_places, zeroed


class AxialSinusoidal(TokenEncoding):
    """Sines and cosines of each coordinate of a grid, side by side, added to the embeddings.

    PE(y, x) = [sin(x ω_i) | cos(x ω_i) | sin(y ω_i) | cos(y ω_i)],  ω_i = n^(−4i/d),  i < d/4

    is the form of MAE; the others are listed in ``posenc.encodings.tokens.grid_forms``, with their
    formulas. Positions are ``[*batch, seq, axes]``, as ``posenc.positions.grid(height, width)``
    makes them; those of normalized forms (``"detr"``, ``"deformable_detr"``) are
    ``[*batch, seq, 4]``, as of ``posenc.positions.masked_grid(mask)``. Tables are exact at any
    coordinate, as those of ``Sinusoidal`` are, for normalized forms up to 2^41; real coordinates
    (``posenc.positions.normalized_grid``) are taken by all other forms. Tokens that stand
    nowhere (``posenc.positions.prefixed``) have rows of zeros, as MAE's class token has.

    Args:
        dim: Width d of the embeddings.
        form: A name in ``GRID_FORMS``, or a ``GridForm`` of your own.
        axes: Number of axes; 2, for ``"cogvideox"`` 3 (t, y, x), by default.
        base: n; 10000 but in DAB-DETR, where it is 20.
        stretch: What coordinates are divided by, exactly: one number for each axis or for all. For
            PixArt that is grid size / base size · interpolation scale, for CogVideoX
            (1, 1.875, 1.875); a ``Fraction`` where a float would round.
        scale: What the embeddings are multiplied with before the sum: ``"sqrt_dim"``, a number, or
            nothing.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
        arithmetic: ``"exact"``, or ``"float32"`` / ``"float32-log"`` for the common formulas;
            normalized forms have the exact one alone.

    Raises:
        ValueError: An unknown form, a width or a number of axes that it does not have, a stretch
            that is no positive number, or a normalized form with a stretch or another arithmetic.

    Reference:
        He et al. 2022, "Masked Autoencoders Are Scalable Vision Learners" (arXiv:2111.06377), and
        ``util/pos_embed.py`` of facebookresearch/mae; Carion et al. 2020, "End-to-End Object
        Detection with Transformers", appendix A.4 (arXiv:2005.12872); Zhu et al. 2021,
        "Deformable DETR" (arXiv:2010.04159).

    Example:
        >>> from posenc.positions import grid
        >>> AxialSinusoidal(8).table(grid(2, 2))[1]  # y = 0, x = 1
        tensor([0.8415, 0.0100, 0.5403, 0.9999, 0.0000, 0.0000, 1.0000, 1.0000])
        >>> AxialSinusoidal(192)(torch.zeros(2, 196, 192), grid(14, 14)).shape
        torch.Size([2, 196, 192])
    """

    keeps_norm = False
    keeps_shift = False

    def __init__(
        self,
        dim: int,
        form: str | GridForm = "mae",
        *,
        axes: int | None = None,
        base: float = 10_000.0,
        stretch: int | float | Fraction | Sequence[int | float | Fraction] = 1,
        scale: Scale = None,
        dropout: float = 0.0,
        batch_first: bool = True,
        arithmetic: Arithmetic = "exact",
    ):
        super().__init__()
        check_whole(dim=dim)
        check_positive_number(base=base)
        if not isinstance(form, GridForm):
            if isinstance(form, str) and form in ELSEWHERE:
                raise ValueError(f"form is {form!r}, which is {ELSEWHERE[form]}.")
            check_choice(tuple(GRID_FORMS), form=form)
            form = GRID_FORMS[form]
        check_flag(batch_first=batch_first)
        self.dim, self.form, self.base, self.batch_first = dim, form, base, batch_first
        self.takes_reals = not form.normalized
        self.axes = _checked_axes(form, axes)
        self.stretch = _checked_stretch(stretch, self.axes)
        if form.normalized and (arithmetic != "exact" or set(self.stretch) != {1}):
            raise ValueError(
                f"arithmetic is {arithmetic!r} and stretch {stretch!r}; form {form.name!r} is "
                f"normalized, which leaves arithmetic='exact' and stretch=1."
            )
        self.scale, self.dropout = scale, checked_dropout(dropout)
        self.factor, self.arithmetic = factor(scale, dim), arithmetic
        blocks = form.blocks(dim, self.axes, base)
        self.order = _channels(blocks, form.sines_first, dim)
        # Row p turns each pair by an angle that is linear in p; a width cut in a pair loses one.
        self.keeps_norm = dim % 2 == 0
        self.keeps_shift = self.keeps_norm and not form.normalized
        self.parts = [
            (axis, SinCos(_divided(part.cosines, self.stretch[axis]), arithmetic))
            for axis, part in blocks
        ]
        # Normalized coordinates count turns, not radians.
        self.turns = [_whole_turns(sincos) if form.normalized else () for _, sincos in self.parts]

    def table(
        self,
        positions: Int64[Tensor, "*batch seq coordinates"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """PE at ``positions``, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers, or ``dtype`` is no floating one.
            ValueError: They do not have as many coordinates as the form takes.
        """
        dtype = floating(dtype)
        points = self._checked_points(positions)
        points, nowhere = among_places(points)
        return zeroed(self._at(points, dtype), nowhere)

    def _at(self, points: Tensor | Coordinates, dtype: torch.dtype) -> Tensor:
        columns = []
        for (axis, sincos), turns in zip(self.parts, self.turns, strict=True):
            start = self.form.start[0]
            if isinstance(points, Tensor) and self.form.normalized:
                along, many = points[..., axis], points[..., axis + 2]
                cos, sin = self._normalized(along, many, turns, dtype)
            else:
                cos, sin = cos_sin(sincos, shifted(points[..., axis], start, reals=True), dtype)
            columns += [sin, cos]
        table = joined(columns, -1)
        return table if self.order == list(range(table.shape[-1])) else table[..., self.order]

    def _normalized(
        self, along: Tensor, many: Tensor, turns: tuple[int, ...], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """cos and sin of (y + start) / (rows + ε) turns and of their parts."""
        start, halves = self.form.start
        numerators = (halves * along + start) * (MILLION // halves)
        return quotient_cos_sin(numerators, many * MILLION + 1, turns, dtype)

    def _checked_points(self, positions: Tensor | Positions) -> Tensor | Coordinates:
        points = checked(positions, reals=not self.form.normalized)
        count = 2 * self.axes if self.form.normalized else self.axes
        if points.ndim < 2 or points.shape[-1] != count:
            made = "masked_grid(mask)" if self.form.normalized else "grid(...)"
            raise ValueError(
                f"positions have shape {tuple(points.shape)}; AxialSinusoidal with form "
                f"{self.form.name!r} takes [*batch, seq, {count}], as of posenc.positions.{made}."
            )
        return points

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x · scale + table)``; see ``posenc.encodings.tokens.addition``.

        With ``positions`` the table holds rows that are kept, and each token takes its own;
        ``out=x`` adds in place.
        """
        return add(
            x,
            table,
            positions,
            name="AxialSinusoidal",
            factor=self.factor,
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
            out=out,
        )

    def extra_repr(self) -> str:
        """Width and form, and what is not at its default."""
        told = [str(self.dim), f"form={self.form.name!r}"]
        for name, default in DEFAULTS.items():
            if getattr(self, name) != default:
                told.append(f"{name}={getattr(self, name)!r}")
        if self.axes != self.form.axes:
            told.append(f"axes={self.axes}")
        if set(self.stretch) != {1}:
            told.append(f"stretch={self.stretch}")
        return ", ".join(told)


DEFAULTS = {
    "base": 10_000.0,
    "scale": None,
    "dropout": 0.0,
    "batch_first": True,
    "arithmetic": "exact",
}


def _checked_axes(form: GridForm, axes: int | None) -> int:
    axes = form.axes if axes is None else axes
    check_whole(axes=axes)
    if axes != form.axes and not form.any_axes:
        raise ValueError(f"axes is {axes}; form {form.name!r} has {form.axes}.")
    return int(axes)


def _checked_stretch(
    stretch: int | float | Fraction | Sequence[int | float | Fraction], axes: int
) -> tuple[int | float | Fraction, ...]:
    each = tuple(stretch) if isinstance(stretch, Sequence) else (stretch,) * axes
    if len(each) != axes or isinstance(stretch, str):
        raise ValueError(
            f"stretch is {stretch!r}; give one number, or one for each of {axes} axes."
        )
    for one in each:
        check_positive_number(stretch=one)
    return each


def _divided(powers: Schedule, stretch: int | float | Fraction) -> Schedule:
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
