"""Tables of cosines and sines: the operator, or ``SinCos.cos_sin`` where operators do not serve."""

from typing import TypeGuard

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc.guards import plain
from posenc.kernels.operators import NATIVE, TRITON, check_devices, refusal, register
from posenc.numerics.columns import Columns
from posenc.numerics.exact import cos_sin_of_sum
from posenc.numerics.phases import Summand
from posenc.numerics.sincos import SinCos, empty_table, written
from posenc.positions import Coordinates, Positions, checked

FORMATS = torch.float32, torch.bfloat16, torch.float16
"""What kernels write; float64 is not correctly rounded anyhow."""

BESIDE, SINE_FIRST, FRESH = 1, 2, 4
"""Bits of an operator's form."""


def rotation_table(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"] | Positions,
    dtype: torch.dtype | None = None,
    factor: float = 1.0,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape 2 pairs"]:
    """factor · cos and factor · sin of position × frequency, each rounded once."""
    positions = checked(positions, reals=True)
    if out is None and _has_operator(positions, sincos, dtype or torch.float32):
        shape = (*positions.shape, 2, len(sincos.turns))
        table = positions.new_empty(shape, dtype=dtype or torch.float32)
        FILL(table, positions, *sincos.operands, factor, FRESH)
        return table
    table = table_to_fill(positions, 2, len(sincos), dtype=dtype, out=out)
    fill_columns(sincos, positions, Columns(table), factor, fresh=out is None)
    return table


def cos_sin(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"] | Coordinates,
    dtype: torch.dtype = torch.float32,
    factor: float = 1.0,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """``sincos.cos_sin``, correctly rounded as it is, by the fastest kernel there is.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> cos, sin = cos_sin(SinCos(Geometric(4)), torch.tensor([2**62]))
        >>> sin
        tensor([[-0.7029,  0.4043]])
    """
    if isinstance(positions, Coordinates) and sincos.common is None:
        sincos, positions = sincos.of_steps(positions)
    if not _has_operator(positions, sincos, dtype):
        return sincos.cos_sin(positions, dtype, factor=factor)
    room = positions.new_empty((2, *positions.shape, len(sincos)), dtype=dtype)
    fill_columns(sincos, positions, columns := Columns(room.movedim(0, -2)), factor, fresh=True)
    return columns.cos, columns.sin


def fill_columns(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"] | Coordinates,
    columns: Columns,
    factor: float = 1.0,
    *,
    fresh: bool = False,
) -> None:
    """``cos_sin`` into a table; ``fresh`` is memory that nothing has been written to."""
    if isinstance(positions, Coordinates) and sincos.common is None:
        sincos, positions = sincos.of_steps(positions)
    table = columns.table
    if table.requires_grad or not _has_operator(positions, sincos, table.dtype):
        sincos.cos_sin(positions, table.dtype, columns, factor)
        return
    form = BESIDE * (columns.axis == -1) + SINE_FIRST * (not columns.cos_first) + FRESH * fresh
    try:
        FILL(table, positions, *sincos.operands, factor, form)
    except RuntimeError as error:
        raise refusal(error) from None


def _has_operator(
    positions: Tensor | Coordinates, sincos: SinCos, dtype: torch.dtype
) -> TypeGuard[Tensor]:
    """Whether the operator makes this table; to compilers the formula's numbers are constants."""
    return (
        not isinstance(positions, Coordinates)
        and sincos.common is None
        and dtype in FORMATS
        and positions.ndim > 0
        and (NATIVE if positions.is_cpu else TRITON and positions.is_cuda)
        and plain(positions)
        and not torch.compiler.is_compiling()
    )


def table_to_fill(
    positions: Int64[Tensor, "*shape"] | Coordinates,
    *columns: int,
    dtype: torch.dtype | None,
    out: Tensor | None = None,
) -> Float[Tensor, "..."]:
    """Room for a table ``[*shape, *columns]``: ``out`` if it is that, or a new one."""
    if isinstance(positions, Coordinates):
        positions = positions.values
    if out is None:
        if plain(positions):  # at once, in half the time
            return positions.new_empty((*positions.shape, *columns), dtype=dtype or torch.float32)
        return empty_table(positions, *columns, dtype=dtype or torch.float32)
    shape, dtype = (*positions.shape, *columns), dtype or out.dtype
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out is {out.dtype} {tuple(out.shape)}; the table is {dtype} {shape}.")
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
