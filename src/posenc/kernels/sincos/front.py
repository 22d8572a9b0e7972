"""Tables of cosines and sines: the operator, or ``SinCos.cos_sin`` where operators do not serve."""

from typing import overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc.guards import plain
from posenc.kernels.operators import check_devices, refusal, register, serve
from posenc.numerics.columns import Columns
from posenc.numerics.phases import Summand
from posenc.numerics.sincos import SinCos, empty_table, written
from posenc.numerics.summed import cos_sin_of_sum
from posenc.positions import Coordinates

FORMATS = torch.float32, torch.bfloat16, torch.float16
"""What kernels write; float64 is not correctly rounded anyhow."""

BESIDE, SINE_FIRST, FRESH = 1, 2, 4
"""Bits of an operator's form."""


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
        ValueError: ``out`` shares memory with itself or with positions.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> cos, sin = cos_sin(SinCos(Geometric(4)), torch.tensor([2**62]))
        >>> sin
        tensor([[-0.7029,  0.4043]])
    """
    if isinstance(positions, Coordinates) and sincos.common is None:
        sincos, positions = sincos.of_steps(positions)
    if isinstance(positions, Coordinates) or sincos.common is not None:
        made = sincos.cos_sin(positions, dtype, out=out, factor=factor)
        return made if out is None else None
    if (
        torch.compiler.is_compiling()  # where the formula's numbers are constants
        or not serve(positions)
        or dtype not in FORMATS
        or not positions.ndim
        or (out is not None and (out.table.dtype is not dtype or out.table.requires_grad))
    ):
        made = sincos.cos_sin(positions, dtype, out=out, factor=factor)
        return made if out is None else None
    columns = out
    if columns is None:
        shape = (2, *positions.shape, len(sincos))
        table = torch.empty(shape, dtype=dtype, device=positions.device)
        columns, fresh = Columns(table.movedim(0, -2)), True
    form = BESIDE * (columns.axis == -1) + SINE_FIRST * (not columns.cos_first) + FRESH * fresh
    try:
        FILL(columns.table, positions, *sincos.operands, factor, form)
    except RuntimeError as error:
        raise refusal(error) from None
    return (columns.cos, columns.sin) if out is None else None


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
        if plain(positions):  # as most are: at once, in half the time
            return positions.new_empty((*positions.shape, *columns), dtype=dtype or torch.float32)
        return empty_table(positions, *columns, dtype=dtype or torch.float32)
    shape, dtype = (*positions.shape, *columns), dtype or out.dtype
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(
            f"out is {out.dtype} {tuple(out.shape)}; the table is {dtype} {shape}. Build it with "
            f"torch.empty{shape}, or leave it out."
        )
    return out


def _columns(table: Tensor, form: int) -> Columns:
    return Columns(table, -1 if form & BESIDE else -2, not form & SINE_FIRST)


def _formula(
    table: Tensor, positions: Tensor, turns: Tensor, radians: Tensor, factor: float, form: int
) -> None:
    words = turns.tolist()
    whole = [sum((word & 2**64 - 1) << 64 * i for i, word in enumerate(each)) for each in words]
    made = cos_sin_of_sum([Summand(positions, tuple(whole))], table.dtype, factor)
    written(made, _columns(table, form))


def _by_triton(
    table: Tensor, positions: Tensor, turns: Tensor, radians: Tensor, factor: float, form: int
) -> None:
    from posenc.kernels.sincos import triton

    if triton.fill(_columns(table, form), positions, turns, factor):
        increment_version(table)
    else:
        _formula(table, positions, turns, radians, factor, form)


def _shaped(table: Tensor, positions: Tensor, *others: object) -> None:
    check_devices(table, positions)


FILL = register("sincos_", _formula, _shaped, _by_triton)
