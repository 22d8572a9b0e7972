"""Rotary encoding of a grid: some pairs turn with the row, the others with the column."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos
from posenc.encodings.queries_keys.rotation import rotate_heads
from posenc.frequencies import Divided, Powers
from posenc.numerics.pairing import Pairing
from posenc.numerics.sincos import Arithmetic
from posenc.positions import Integers

Y, X = 0, 1


@dataclass(frozen=True)
class AxialForm:
    """One published way to share the pairs of a head between two axes.

    Attributes:
        formula: Which frequencies go where.
        pairing: Which channels form a pair.
        blocks: The axes in the order of their pairs, each with the first of its numerators n;
            for a width d they go up to d in steps of 4, and ω = base^(−n/d).
    """

    name: str
    formula: str
    pairing: Pairing
    blocks: tuple[tuple[int, int], ...]


FORMS = {
    "rope_vit": AxialForm(
        "rope_vit",
        "[x | y], each b^(−4i/d), i < d/4; base 100",
        "interleaved",
        ((X, 0), (Y, 0)),
    ),
    "pixtral": AxialForm(
        "pixtral",
        "[y | x], b^(−2j/d): even j to y, odd j to x; base 10000",
        "half",
        ((Y, 0), (X, 2)),
    ),
}


class AxialRotary(QueryKeyEncoding):
    """Pair i turns by y · ω_i or by x · ω_i, for a token at row y and column x of a grid.

    Positions are ``[*batch, seq, 2]`` with (y, x), as ``posenc.positions.grid(height, width)``
    makes them. q·k depends on the two differences of rows and of columns.

    Args:
        head_dim: d, a multiple of 4.
        base: b; 100 for ``"rope_vit"``, 10000 for ``"pixtral"``.
        form: A name in ``FORMS``, or an ``AxialForm`` of your own.
        stretch: For a change of resolution: how many times higher and wider the grid is than the
            one trained on. Coordinates are divided by it, exactly, so that the corners stay where
            they were; 1 extrapolates.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
        arithmetic: ``"exact"``, or ``"float32"`` for the common formula.

    Raises:
        ValueError: A width that is no multiple of 4, or an unknown form.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 8
        (arXiv:2403.13298); Agrawal et al. 2024, "Pixtral 12B", section 2.2 (arXiv:2410.07073).

    Example:
        >>> from posenc.positions import grid
        >>> AxialRotary(64).table(grid(14, 14)).shape
        torch.Size([196, 2, 32])
    """

    is_relative = True

    def __init__(
        self,
        head_dim: int,
        base: float = 100.0,
        form: str | AxialForm = "rope_vit",
        *,
        stretch: tuple[float, float] = (1.0, 1.0),
        heads_first: bool = True,
        arithmetic: Arithmetic = "exact",
    ):
        super().__init__()
        check_whole(4, head_dim=head_dim)
        check_positive_number(base=base)
        if head_dim % 4:
            raise ValueError(
                f"head_dim is {head_dim}; two axes share its pairs, so it must be a multiple of 4."
            )
        if not isinstance(form, AxialForm):
            check_choice(tuple(FORMS), form=form)
            form = FORMS[form]
        if not isinstance(stretch, Sequence) or len(stretch) != 2:
            raise ValueError(f"stretch is {stretch!r}; give two numbers, for height and width.")
        for each in stretch:
            check_positive_number(stretch=each)
        self.head_dim, self.base, self.form, self.stretch = head_dim, base, form, tuple(stretch)
        self.heads_first = heads_first
        pairs = [(axis, n) for axis, first in form.blocks for n in range(first, head_dim, 4)]
        axes, numerators = zip(*pairs, strict=True)
        powers = Powers(base, numerators, head_dim)
        schedule = (
            powers
            if self.stretch == (1.0, 1.0)
            else Divided(powers, tuple(self.stretch[axis] for axis in axes))
        )
        self.sincos = AxisSinCos(schedule, axes, arithmetic)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq 2"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions`` (y, x), float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have two coordinates.
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
        return rotate_heads(
            x,
            table,
            name="AxialRotary",
            head_dim=self.head_dim,
            pairing=self.form.pairing,
            heads_first=self.heads_first,
        )

    def extra_repr(self) -> str:
        """Width, base and form."""
        return f"{self.head_dim}, base={self.base}, form={self.form.name!r}"
