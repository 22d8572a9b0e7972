"""Rotary encoding of points: some pairs turn by the row, others by the column, or the frame."""

from collections.abc import Sequence
from fractions import Fraction

from posenc.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.queries_keys.axes import AxisSinCos, RotationOfAxes
from posenc.encodings.queries_keys.axial_forms import (
    FORMS,
    AxialForm,
    checked_bases,
    checked_split,
)
from posenc.encodings.queries_keys.rotation import check_rows, rotate_heads
from posenc.encodings.shapes import CosSinRows, Heads
from posenc.frequencies import Linear, Schedule
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.product import joined
from posenc.numerics.sincos import Arithmetic


class AxialRotary(RotationOfAxes):
    """Pair i turns by p[a_i] · ω_i, where a_i is one of the axes of a grid.

    Positions are ``[*batch, seq, axes]``: (y, x) for images, as of ``posenc.positions.grid(height,
    width)``, (t, h, w) for video. A form says how a published model shares a head among the axes;
    its base, split and schedules can be replaced:

    - ``AxialRotary(64)``: RoPE-ViT; ``AxialRotary(128, form="wan")``: Wan.
    - ``flux.with_schedules([NTK(each, 2.0) for each in flux.schedules])``: NTK by axis.

    Args:
        base: b, one for all axes or one each; that of the form if not given.
        form: A name in ``posenc.encodings.queries_keys.axial_forms.FORMS``, or your ``AxialForm``.
        split: Channels of each axis; the rest of a head is not rotated.
        schedules: The frequencies themselves, one schedule an axis, in place of base and split.
        stretch: How many times larger the grid is along each axis than the one trained on.
            Coordinates are divided by it, exactly; 1 extrapolates. EVA-02's p · trained / actual is
            ``Fraction(actual, trained)``.
        arithmetic: ``"exact"``, or ``"float32"`` for the common formula.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 8
        (arXiv:2403.13298); Agrawal et al. 2024, "Pixtral 12B", section 2.2 (arXiv:2410.07073);
        Fang et al. 2023, "EVA-02" (arXiv:2303.11331); the others as in transformers and diffusers.

    Example:
        >>> from posenc.positions import grid
        >>> AxialRotary(64).table(grid(14, 14)).shape
        torch.Size([196, 2, 32])
    """

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
        if not isinstance(form, AxialForm):
            check_choice(tuple(FORMS), form=form)
            form = FORMS[form]
        self.form = form
        self.head_dim, self.heads_first = head_dim, heads_first
        self.arithmetic: Arithmetic = arithmetic
        axes = len(self.form.axes)
        if schedules is None:
            self.base = checked_bases(self.form.base if base is None else base, axes)
            widths = self.form.widths(head_dim) if split is None else split
            self.split = checked_split(widths, axes, head_dim)
            self.schedules = self.form.schedules(self.split, self.base)
        else:
            if base is not None or split is not None:
                raise TypeError("schedules have their own base and split; give one or the other.")
            self.base, self.schedules = None, tuple(schedules)
            widths = tuple(2 * len(each) for each in self.schedules)
            self.split = checked_split(widths, axes, head_dim)
        self.stretch = (1.0,) * axes if stretch is None else tuple(stretch)
        for each in self.stretch:
            check_positive_number(stretch=each)
        self.rotated_dim = sum(self.split)
        pairing, last = self.form.pairing == "interleaved", self.form.rotated == "suffix"
        self.layout = RotaryLayout(pairing, last, heads_first)
        stretched = [
            each if by == 1 else Linear(each, by)
            for each, by in zip(self.schedules, self.stretch, strict=True)
        ]
        self.sincos = AxisSinCos(stretched, self.form.pairs(self.split), arithmetic)

    def with_schedules(self, schedules: Sequence[Schedule]) -> "AxialRotary":
        """The same encoding with other frequencies, as to serve larger images or longer videos."""
        return AxialRotary(
            self.head_dim,
            form=self.form,
            schedules=schedules,
            stretch=self.stretch,
            heads_first=self.heads_first,
            arithmetic=self.arithmetic,
        ).train(self.training)

    def encode_queries(self, q: Heads, table: CosSinRows) -> Heads:
        if not self.form.by_axis:
            return super().encode_queries(q, table)
        check_rows(q, table, (2, self.rotated_dim // 2), self.heads_first)
        widths = [self.split[self.form.axes.index(axis)] for axis in self.form.in_order]
        tables = table.split([width // 2 for width in widths], dim=-1)
        rest = [self.head_dim - sum(widths)]
        parts = list(q.split(rest + widths if self.layout.suffix else widths + rest, dim=-1))
        for place, width in enumerate(widths, start=self.layout.suffix):
            block, of = parts[place].contiguous(), tables[place - self.layout.suffix]
            parts[place] = rotate_heads(block, of, self.layout, width, width)
        return joined(parts, -1)

    def extra_repr(self) -> str:
        base = self.base and (self.base[0] if len(set(self.base)) == 1 else self.base)
        told = [str(self.head_dim), f"base={base}" if base else f"schedules={self.schedules}"]
        told.append(f"form={self.form.name!r}")
        usual = self.form.split
        if base and self.split != (usual(self.head_dim) if callable(usual) else usual):
            told.append(f"split={self.split}")
        if set(self.stretch) != {1}:
            told.append(f"stretch={self.stretch}")
        return ", ".join(told)
