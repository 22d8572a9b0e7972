"""Rotary encoding of points: some pairs turn by the row, others by the column, or the frame."""

from collections.abc import Sequence
from fractions import Fraction

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import (
    check_choice,
    check_flag,
    check_positive_number,
    check_whole,
    is_row,
)
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos
from posenc.encodings.queries_keys.axial_forms import (
    ELSEWHERE,
    FORMS,
    AxialForm,
    checked_bases,
    checked_split,
)
from posenc.encodings.queries_keys.rotation import check_fit, rotate_heads
from posenc.frequencies import Linear, Schedule
from posenc.numerics.joined import joined
from posenc.numerics.sincos import Arithmetic
from posenc.positions import Positions


class AxialRotary(QueryKeyEncoding):
    """Pair i turns by p[a_i] · ω_i, where a_i is one of the axes of a grid.

    Positions are ``[*batch, seq, axes]``: (y, x) for images, as ``posenc.positions.grid(height,
    width)`` makes them, (t, h, w) for video. q·k depends on the difference along each axis.

    A form is how a published model shares a head among the axes. Its base, split and schedules can
    be replaced one by one:

    - ``AxialRotary(64)``: RoPE-ViT; ``AxialRotary(128, form="wan")``: Wan.
    - ``AxialRotary(96, base=(1e4, 500.0, 500.0), split=(32, 32, 32), form="wan")``.
    - ``flux.with_schedules([NTK(each, 2.0) for each in flux.schedules])``: NTK by axis; likewise
      YaRN, or any schedule, and each axis its own.

    Args:
        head_dim: Width of a head.
        base: b, one for all axes or one each; that of the form if not given.
        form: A name in ``posenc.encodings.queries_keys.axial_forms.FORMS``, or an ``AxialForm`` of
            your own.
        split: Channels of each axis, in the order of the coordinates. The rest of a head is not
            rotated.
        schedules: The frequencies themselves, one schedule an axis, half as many as it has
            channels; ``split`` and ``base`` are then not given.
        stretch: For a change of resolution: how many times larger the grid is along each axis than
            the one trained on. Coordinates are divided by it, exactly, so that the corners stay
            where they were; 1 extrapolates. EVA-02's p · trained / actual is the stretch
            ``Fraction(actual, trained)``.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
        arithmetic: ``"exact"``, or ``"float32"`` for the common formula.

    Raises:
        TypeError: Schedules are given beside a base or a split, or are none.
        ValueError: A form cannot split this width, or an unknown form.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 8
        (arXiv:2403.13298); Agrawal et al. 2024, "Pixtral 12B", section 2.2 (arXiv:2410.07073);
        Fang et al. 2023, "EVA-02" (arXiv:2303.11331); the others as in transformers and diffusers.

    Example:
        >>> from posenc.positions import grid
        >>> AxialRotary(64).table(grid(14, 14)).shape
        torch.Size([196, 2, 32])
        >>> AxialRotary(128, form="flux").split
        (16, 56, 56)
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self,
        head_dim: int,
        base: float | Sequence[float] | None = None,
        form: str | AxialForm = "rope_vit",
        *,
        split: Sequence[int] | None = None,
        schedules: Sequence[Schedule] | None = None,
        stretch: Sequence[int | float | Fraction] | None = None,
        heads_first: bool = True,
        arithmetic: Arithmetic = "exact",
    ):
        super().__init__()
        check_whole(2, head_dim=head_dim)
        self.form = form if isinstance(form, AxialForm) else _named(form)
        check_flag(heads_first=heads_first)
        self.head_dim, self.heads_first = head_dim, heads_first
        self.arithmetic: Arithmetic = arithmetic
        axes = len(self.form.axes)
        if schedules is None:
            self.base = checked_bases(self.form.base if base is None else base, axes)
            self.split = (
                self.form.widths(head_dim)
                if split is None
                else checked_split(split, axes, head_dim)
            )
            self.schedules = self.form.schedules(self.split, self.base)
        else:
            self.base = None
            self.schedules = _checked_schedules(schedules, axes, base, split)
            widths = tuple(2 * len(each) for each in self.schedules)
            self.split = checked_split(widths, axes, head_dim)
        self.stretch = _checked_stretch(stretch, axes)
        self.sincos = AxisSinCos(
            tuple(map(_stretched, self.schedules, self.stretch)),
            self.form.pairs(self.split),
            arithmetic,
        )

    def with_schedules(self, schedules: Sequence[Schedule]) -> "AxialRotary":
        """The same encoding with other frequencies, as to serve larger images or longer videos.

        Example:
            >>> from posenc.frequencies import NTK
            >>> wan = AxialRotary(128, form="wan")
            >>> time, height, width = wan.schedules
            >>> longer = wan.with_schedules((NTK(time, 2.0), height, width))
            >>> longer.schedules[0]
            NTK(of=Geometric(dim=44, base=10000.0), factor=2.0)
        """
        return AxialRotary(
            self.head_dim,
            form=self.form,
            schedules=schedules,
            stretch=self.stretch,
            heads_first=self.heads_first,
            arithmetic=self.arithmetic,
        ).train(self.training)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions``, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have one coordinate an axis.
        """
        return self.sincos.table(positions, dtype)

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
        if self.form.by_axis:
            return self._rotate_by_axis(x, table)
        return rotate_heads(
            x,
            table,
            name="AxialRotary",
            head_dim=self.head_dim,
            rotated_dim=sum(self.split),
            pairing=self.form.pairing,
            rotated=self.form.rotated,
            heads_first=self.heads_first,
        )

    def _rotate_by_axis(self, x: Tensor, table: Tensor) -> Tensor:
        """Each block of channels by itself: pairs do not reach from one axis into another."""
        check_fit(
            x,
            table,
            (2, sum(self.split) // 2),
            name="AxialRotary",
            head_dim=self.head_dim,
            heads_first=self.heads_first,
        )
        widths = [self.split[self.form.axes.index(axis)] for axis in self.form.in_order]
        rest = self.head_dim - sum(widths)
        suffix = self.form.rotated == "suffix"
        blocks = x.split([rest, *widths] if suffix else [*widths, rest], dim=-1)
        turned = blocks[1:] if suffix else blocks[:-1]
        tables = table.split([width // 2 for width in widths], dim=-1)
        made = [
            rotate_heads(
                block.contiguous(),
                of,
                name="AxialRotary",
                head_dim=block.shape[-1],
                rotated_dim=block.shape[-1],
                pairing=self.form.pairing,
                heads_first=self.heads_first,
            )
            for block, of in zip(turned, tables, strict=True)
        ]
        return joined([blocks[0], *made] if suffix else [*made, blocks[-1]], -1)

    def extra_repr(self) -> str:
        """Width and form, and what is not as the form has it."""
        told = [str(self.head_dim)]
        if self.base is None:
            told.append(f"schedules={self.schedules}")
        elif len(set(self.base)) == 1:
            told.append(f"base={self.base[0]}")
        else:
            told.append(f"base={self.base}")
        told.append(f"form={self.form.name!r}")
        if self.base is not None and not self._splits_as_published():
            told.append(f"split={self.split}")
        if any(each != 1 for each in self.stretch):
            told.append(f"stretch={self.stretch}")
        return ", ".join(told)

    def _splits_as_published(self) -> bool:
        try:
            return self.split == self.form.widths(self.head_dim)
        except ValueError:  # the form has no split of such a width
            return False


def _named(form: object) -> AxialForm:
    if isinstance(form, str) and form in ELSEWHERE:
        raise ValueError(f"form is {form!r}, an encoding of its own: {ELSEWHERE[form]}.")
    check_choice(tuple(FORMS), form=form)
    return FORMS[form]  # type: ignore[index]  # checked


def _checked_schedules(
    schedules: object, axes: int, base: object, split: object
) -> tuple[Schedule, ...]:
    if base is not None or split is not None:
        raise TypeError(
            "schedules have bases and widths of their own; give them without base and split."
        )
    given = tuple(schedules) if isinstance(schedules, Sequence) else ()
    if len(given) != axes or not all(isinstance(each, Schedule) for each in given):
        raise TypeError(
            f"schedules are {schedules!r}; give {axes}, one an axis, as Geometric(32). Resolve one "
            f"that depends on the length by .at(length)."
        )
    return given


def _checked_stretch(stretch: object, axes: int) -> tuple[int | float | Fraction, ...]:
    if stretch is None:
        return (1.0,) * axes
    if not is_row(stretch) or len(stretch) != axes:
        raise ValueError(f"stretch is {stretch!r}; give {axes} numbers, one an axis.")
    for each in stretch:
        check_positive_number(stretch=each)
    return tuple(stretch)


def _stretched(schedule: Schedule, stretch: int | float | Fraction) -> Schedule:
    return schedule if stretch == 1 else Linear(schedule, stretch)
