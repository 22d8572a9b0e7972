"""How every added encoding meets the embeddings: dropout(x · scale + table), rounded once."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal

from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_number, check_probability
from posenc.encodings.base import TokenEncoding
from posenc.encodings.shapes import Embeddings
from posenc.kernels.addition.front import scaled_sum
from posenc.positions import checked

Scale = Literal["sqrt_dim"] | float | None


def factor(scale: Scale, dim: int) -> float | None:
    """The number that ``scale`` stands for: √dim, itself, or none."""
    if scale == "sqrt_dim":
        return sqrt(dim)
    if scale is not None:
        check_number(scale=scale)
    return scale


def checked_dropout(dropout: float) -> float:
    """``dropout``, if it is a probability."""
    check_probability(dropout=dropout)
    return dropout


def check_fit(name: str, shape: Sequence[int], rows: Sequence[int]) -> None:
    """Refuse rows of other tokens than those of the content; they might broadcast."""
    fits = len(rows) <= len(shape) and rows[-2:] == shape[-2:]
    for size, given in zip(shape[-3::-1], rows[-3::-1], strict=False):
        fits = fits and given in (1, size)
    if not fits:
        raise ValueError(
            f"Content [*batch, seq, dim] has shape {tuple(shape)}; the rows given to {name} have "
            f"{tuple(rows)}. Each token takes one."
        )


class Added(TokenEncoding):
    """An encoding whose table is added to the embeddings; a subclass defines ``table``.

    Args:
        scale: What the embeddings are multiplied with before the sum: ``"sqrt_dim"``, a number, or
            nothing.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
    """

    def __init__(
        self, dim: int, *, scale: Scale = None, dropout: float = 0.0, batch_first: bool = True
    ):
        super().__init__()
        self.dim, self.scale, self.factor = dim, scale, factor(scale, dim)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first

    def encode(
        self,
        x: Embeddings,
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Embeddings:
        """``dropout(x · scale + table)`` in float32 at least, rounded once to the dtype of ``x``.

        Args:
            table: ``[seq, dim]`` or ``[*batch, seq, dim]``; with ``positions``, kept rows.
            positions: Which kept row each token takes, ``[seq]`` or ``[*batch, seq]``.
            out: Where to write the result; ``out=x`` adds in place.
        """
        rows = table.shape
        if positions is not None:
            positions = checked(positions)
            rows = (*positions.shape, *rows[1:])
        first = self.batch_first
        shape = x.shape if first else (*x.shape[1:-1], x.shape[0], x.shape[-1])
        check_fit(type(self).__name__, shape, rows)
        if not first:
            if positions is None:
                table = _sequence_first(table, -2)
            else:
                positions = _sequence_first(positions, -1)
        dropout = self.dropout if self.training else 0.0
        return scaled_sum(x, table, positions, scale=self.factor, dropout=dropout, out=out)


def _sequence_first(rows: Tensor, axis: int) -> Tensor:
    return rows.unsqueeze(1) if rows.ndim == -axis else rows.movedim(axis, 0)
