"""Tables of cosines and sines: C, Triton, or else ``SinCos.cos_sin``."""

from typing import overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import eager, kernels_reach, may_look, on_accelerator
from posenc.kernels.out import check_memory, check_out
from posenc.kernels.sincos import cpu
from posenc.kernels.sincos.strides import FORMATS
from posenc.numerics.columns import Columns
from posenc.numerics.sincos import SinCos, check_factor, empty_table
from posenc.positions import Coordinates, checked


@overload
def cos_sin(
    sincos: SinCos,
    positions: Tensor | Coordinates,
    dtype: torch.dtype = ...,
    out: None = None,
    factor: float = ...,
) -> tuple[Tensor, Tensor]: ...


@overload
def cos_sin(
    sincos: SinCos,
    positions: Tensor | Coordinates,
    dtype: torch.dtype,
    out: Columns,
    factor: float = ...,
    fresh: bool = ...,
) -> None: ...


def cos_sin(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"] | Coordinates,
    dtype: torch.dtype = torch.float32,
    out: Columns | None = None,
    factor: float = 1.0,
    fresh: bool = False,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]] | None:
    """``sincos.cos_sin``, correctly rounded as it is, by the fastest kernel there is.

    Args:
        sincos: The frequencies and their arithmetic.
        positions: int64, or coordinates of one scale, of any shape.
        dtype: The dtype of the values.
        out: The columns of a table that exists already, to be written.
        factor: The attention factor of a schedule.
        fresh: Whether ``out`` is memory that nothing has been written to.

    Returns:
        cos and sin, or nothing where they are in ``out``: two views of a short table take as long
        as the table.

    Raises:
        ValueError: ``out`` has elements that share a place, or shares memory with positions; or
            one of both has no memory. Or ``factor`` is a tensor that learns.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> cos, sin = cos_sin(SinCos(Geometric(4)), torch.tensor([2**62]))
        >>> sin
        tensor([[-0.7029,  0.4043]])
    """
    check_factor(factor)
    if isinstance(positions, Coordinates) and sincos.common is not None:
        made = sincos.cos_sin(positions, dtype, out=out, factor=factor)
        return made if out is None else None
    if isinstance(positions, Coordinates):
        sincos, positions = sincos.of_steps(positions)
    positions = checked(positions)
    if out is not None and not fresh:
        check_memory(out=out.table)
    if sincos.common is None and dtype in FORMATS and eager():
        columns = out
        if out is None and kernels_reach(positions):
            shape = (2, *positions.shape, len(sincos))
            made = torch.empty(shape, dtype=dtype, device=positions.device)
            columns, fresh = Columns(made.movedim(0, -2)), True
        if (
            columns is not None
            and columns.table.dtype is dtype  # not to round twice
            and _fill(columns, positions, sincos, factor, fresh)
        ):
            return (columns.cos, columns.sin) if out is None else None
    check_memory(positions=positions)
    if out is not None:
        check_out(out.table, positions=positions)
    made = sincos.cos_sin(positions, dtype, out=out, factor=factor)
    return made if out is None else None


def _fill(columns: Columns, positions: Tensor, sincos: SinCos, factor: float, fresh: bool) -> bool:
    if positions.ndim != 1:  # rows of one stride; a batch may share its positions
        positions = positions.contiguous()
    if not on_accelerator(columns.table, positions):
        return cpu.fill(columns, positions, sincos, factor, fresh)
    from posenc.kernels.sincos import triton

    return triton.fill(columns, positions, sincos, factor)


def table_to_fill(
    positions: Int64[Tensor, "*shape"] | Coordinates,
    *columns: int,
    dtype: torch.dtype | None,
    out: Tensor | None = None,
) -> Float[Tensor, "..."]:
    """Room for a table ``[*shape, *columns]``: ``out`` if it is that, or a new one.

    Raises:
        ValueError: ``out`` has another shape or dtype.

    Example:
        >>> table_to_fill(torch.zeros(2, 3, dtype=torch.int64), 4, dtype=None).shape
        torch.Size([2, 3, 4])
    """
    if isinstance(positions, Coordinates):
        positions = positions.values
    if out is None:
        if eager() and may_look(positions):  # as most are: at once, in half the time
            return positions.new_empty((*positions.shape, *columns), dtype=dtype or torch.float32)
        return empty_table(positions, *columns, dtype=dtype or torch.float32)
    shape, dtype = (*positions.shape, *columns), dtype or out.dtype
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(
            f"out is {out.dtype} {tuple(out.shape)}; the table is {dtype} {shape}. Build it with "
            f"torch.empty{shape}, or leave it out."
        )
    return out
