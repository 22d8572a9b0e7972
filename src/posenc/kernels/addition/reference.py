"""The meaning of a sum, in plain tensor operations; kernels are proven equal to it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc import guards
from posenc.kernels.out import written
from posenc.kernels.philox import Dropping, kept
from posenc.kernels.rows import rows_at


def scaled_sum(
    x: Float[Tensor, "*shape dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropping: Dropping | None = None,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape dim"]:
    """``x · scale + table``, an element dropped here and there, rounded once to the dtype of ``x``.

    Arithmetic is float32 at least, and each operation is rounded there; so results are the same
    bits whoever computes them.

    Args:
        x: Content.
        table: What is added, if anything is; it broadcasts against ``x``. With ``positions``,
            ``[rows, dim]``.
        positions: Which row of the table each token takes, broadcast against those of ``x``.
        scale: What ``x`` is multiplied with first.
        dropping: Which elements of the sum become 0; the rest is divided by what is left of 1.
        out: Where to write the result; ``out=x`` adds in place.

    Raises:
        IndexError: A position is not a row of the table.
        TypeError: ``x`` is not floating, which would cut the sum.
        ValueError: The table is of more tokens than ``x``, or positions come without a table;
            ``out`` has another shape or dtype than ``x``, or elements that share a place,
            or shares memory with the table or positions.

    Example:
        >>> scaled_sum(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        tensor([3.5000, 3.2500])
    """
    check_sum(x, table, positions)
    wide = working_dtype(x, table)
    summed = x.to(wide) if scale is None else x.to(wide) * scale
    if table is not None:
        summed = summed + (table if positions is None else rows_at(table, positions))
    made = dropped(summed, dropping).to(x.dtype)
    return written(made, out, table=table, positions=positions)


def check_sum(x: Tensor, table: Tensor | None, positions: Tensor | None) -> None:
    """Refuse a sum that would be larger than ``x``, or cut to whole numbers.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: The table is of more tokens than ``x``, or positions come without a table.

    Example:
        >>> check_sum(torch.ones(1, 2), torch.ones(3, 2), None)
        Traceback (most recent call last):
        ...
        ValueError: x has shape (1, 2) and the table's rows (3, 2), which do not broadcast to it. \
Pass one row a token, or one for all.
    """
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; sums with a table take floating content.")
    if table is None:
        if positions is not None:
            raise ValueError("positions were given and no table whose rows they are. Pass both.")
        return
    rows = table.shape if positions is None else (*positions.shape, *table.shape[1:])
    held = x.shape[max(x.ndim - len(rows), 0) :]
    fits = len(rows) <= x.ndim and all(
        row == size or row == 1 for row, size in zip(rows, held, strict=True)
    )
    if not fits:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and the table's rows {tuple(rows)}, which do not "
            f"broadcast to it. Pass one row a token, or one for all."
        )


def gradient_of_x(
    gradient: Float[Tensor, "*shape"], scale: float | None, dropping: Dropping | None
) -> Float[Tensor, "*shape"]:
    """The gradient of ``scaled_sum`` by ``x``, of which it does not depend.

    Example:
        >>> gradient_of_x(torch.ones(2), 3.0, None)
        tensor([3., 3.])
    """
    wide = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
    wide = dropped(wide, dropping)
    return (wide if scale is None else wide * scale).to(gradient.dtype)


def dropped(summed: Float[Tensor, "*shape"], dropping: Dropping | None) -> Float[Tensor, "*shape"]:
    """``summed`` with elements dropped; even what is infinite or NaN becomes 0 there.

    Example:
        >>> dropped(torch.ones(8), Dropping(0.5, 7))
        tensor([0., 0., 0., 0., 2., 2., 0., 0.])
    """
    if dropping is None:
        return summed
    return torch.where(kept(summed.shape, dropping, summed.device), summed * dropping.rescale, 0.0)


def working_dtype(x: Tensor, table: Tensor | None) -> torch.dtype:
    """The dtype of sums: float32 at least."""
    wide = guards.working_dtype(x.dtype)
    return wide if table is None else torch.promote_types(wide, guards.working_dtype(table.dtype))
