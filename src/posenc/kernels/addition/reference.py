"""The meaning of a sum, in plain tensor operations; kernels are proven equal to it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc import guards
from posenc.kernels.philox import kept
from posenc.kernels.rows import rows_at


def scaled_sum(
    x: Float[Tensor, "*shape dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    scale: float = 1.0,
    rescale: float = 1.0,
    threshold: int = 0,
    key: int = 0,
) -> Float[Tensor, "*shape dim"]:
    """``(x · scale + table) · rescale`` where an element is kept, 0 elsewhere.

    Kept are elements whose random word by ``key`` is ``threshold`` or more. Each operation is
    rounded, to float32 at least, so results are the same bits whoever computes them. At the end
    they are rounded once to the dtype of ``x``.
    """
    check(x, table, positions)
    wide = working_dtype(x, table)
    summed = x.to(wide) if scale == 1.0 else x.to(wide) * scale
    if table is not None:
        summed = summed + (table if positions is None else rows_at(table, positions))
    if threshold:
        mask = kept(summed.shape, threshold, key, summed.device)
        summed = torch.where(mask, summed * rescale, 0.0)
    return summed.to(x.dtype)


def check(x: Tensor, table: Tensor | None, positions: Tensor | None) -> None:
    """Refuse a sum that would be larger than ``x``, or cut to whole numbers."""
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; sums with a table take floating content.")
    if table is None:
        return
    rows = table.shape if positions is None else (*positions.shape, *table.shape[1:])
    held = x.shape[max(x.ndim - len(rows), 0) :]
    fits = rows[-1:] == x.shape[-1:] and all(
        row in (1, size) for row, size in zip(rows, held, strict=False)
    )
    if len(rows) > x.ndim or not fits:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, to which the table's rows, {tuple(rows)}, do not "
            f"broadcast."
        )


def working_dtype(x: Tensor, table: Tensor | None) -> torch.dtype:
    """The dtype of sums: float32 at least."""
    wide = guards.working_dtype(x.dtype)
    return wide if table is None else torch.promote_types(wide, guards.working_dtype(table.dtype))
