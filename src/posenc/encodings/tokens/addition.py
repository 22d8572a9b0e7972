"""How every added encoding meets the embeddings: dropout(x · scale + table), rounded once."""

from math import isfinite, sqrt
from numbers import Real
from typing import Literal

from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_probability
from posenc.guards import check_dense
from posenc.kernels.addition.front import scaled_sum
from posenc.positions import checked

Scale = Literal["sqrt_dim"] | float | None


def factor(scale: Scale, dim: int) -> float | None:
    """The number that ``scale`` stands for: √dim, itself, or none.

    Raises:
        ValueError: ``scale`` is some other word, or no finite number.

    Example:
        >>> factor("sqrt_dim", 16)
        4.0
    """
    if isinstance(scale, str) and scale == "sqrt_dim":
        return sqrt(dim)
    is_number = isinstance(scale, Real) and not isinstance(scale, bool) and isfinite(scale)
    if scale is not None and not is_number:
        raise ValueError(f"scale is {scale!r}; it must be 'sqrt_dim', a finite number, or None.")
    return scale


def checked_dropout(dropout: float) -> float:
    """``dropout`` if it is a probability.

    Raises:
        ValueError: It is not.
    """
    check_probability(dropout=dropout)
    return dropout


def add(
    x: Float[Tensor, "*batch seq dim"],
    table: Float[Tensor, "*rows dim"],
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    name: str,
    factor: float | None = None,
    dropout: float = 0.0,
    batch_first: bool = True,
    out: Tensor | None = None,
) -> Float[Tensor, "*batch seq dim"]:
    """``dropout(x · factor + table)`` in float32 at least, rounded once to the dtype of ``x``.

    Args:
        x: Embeddings ``[*batch, seq, dim]``, or ``[seq, batch, dim]`` without ``batch_first``.
        table: ``[seq, dim]`` for all rows of the batch, or ``[*batch, seq, dim]``; with
            ``positions``, rows 0, 1, 2, … that are kept, ``[rows, dim]``.
        positions: Which row of the table each token takes, ``[seq]`` or ``[*batch, seq]``. They
            are read where they are used, so nothing is gathered first.
        name: Who adds, for the words of an error.
        factor: What ``x`` is multiplied with first.
        dropout: Probability of dropping an element of the sum.
        batch_first: Whether the sequence is the last axis but one of ``x``, or the first.
        out: Where to write the result; ``out=x`` adds in place.

    Raises:
        TypeError: ``x`` or ``table`` is not floating.
        ValueError: The width or the length of ``x`` is not that of the table, or the table has
            rows for more sequences than ``x`` holds, or ``out`` is not like ``x``, or ``x`` has not
            one batch axis without ``batch_first``.
        IndexError: A position is not a row of the table.
    """
    check_dense(x=x)
    if not x.is_floating_point():
        raise TypeError(
            f"x is {x.dtype}; {name} takes floating embeddings [*batch, seq, dim]. "
            f"Look token ids up in an embedding first."
        )
    if not table.is_floating_point():
        raise TypeError(
            f"The table is {table.dtype}; {name} adds floating rows, as of its table()."
        )
    if not batch_first and x.ndim != 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; batch_first=False takes [seq, batch, dim]. Give it one "
            f"batch axis, or build {name} with batch_first=True."
        )
    if positions is not None:
        positions = _checked_rows(table, positions)
    if not batch_first:
        if positions is None:
            table = _sequence_first(table, -2)
        else:
            positions = _sequence_first(positions, -1)
    rows = table.shape if positions is None else (*positions.shape, table.shape[-1])
    _check_fit(x, rows, name, batch_first)
    return scaled_sum(x, table, positions, scale=factor, dropout=dropout, out=out)


def _sequence_first(rows: Tensor, axis: int) -> Tensor:
    return rows.unsqueeze(1) if rows.ndim == -axis else rows.movedim(axis, 0)


def _checked_rows(table: Tensor, positions: Tensor) -> Tensor:
    if table.ndim != 2:
        raise ValueError(
            f"The table has shape {tuple(table.shape)}; with positions it holds one row a "
            f"position, [rows, dim]. Leave positions out if its rows are those of the tokens."
        )
    return checked(positions)


def _check_fit(x: Tensor, rows: tuple[int, ...], name: str, batch_first: bool) -> None:
    if x.shape[-1] != rows[-1]:
        raise ValueError(
            f"x has width {x.shape[-1]}; {name} was built for dim {rows[-1]}. "
            f"Build it with dim={x.shape[-1]}."
        )
    axis = -2 if batch_first else 0
    if x.shape[axis] != rows[axis]:
        raise ValueError(
            f"x has {x.shape[axis]} tokens and the table {rows[axis]} rows. Pass one "
            f"position a token (batch_first={batch_first} makes axis {axis} the sequence)."
        )
    # A table may serve every row of x; the other way round the output would outgrow the input.
    batch_axes = slice(0, -2) if batch_first else slice(1, -1)
    shared, batch = rows[batch_axes][::-1], x.shape[batch_axes][::-1]
    if len(shared) > len(batch) or any(
        r not in (1, b) for r, b in zip(shared, batch[: len(shared)], strict=True)
    ):
        raise ValueError(
            f"x has shape {tuple(x.shape)} and the table {tuple(rows)}. Pass positions "
            f"[seq] for all rows of x, or as many rows of positions as x has."
        )
