"""Tables of cosines and sines: C, Triton, or else ``SinCos.cos_sin``."""

from typing import overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._guards import eager, kernels_reach, may_look, on_accelerator
from posenc.kernels.out import check_memory, check_out
from posenc.kernels.sincos import cpu
from posenc.kernels.sincos.strides import FORMATS
from posenc.numerics.columns import Columns
from posenc.numerics.long_turns import LongTurns
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
    if isinstance(positions, Coordinates) and positions.rest is None:
        sincos, positions = sincos.of_steps(positions)
    words = _words(checked(positions, reals=True))
    if out is not None and not fresh:
        check_memory(out=out.table)
    if sincos.common is None and dtype in FORMATS and eager():
        columns = out
        if out is None and kernels_reach(*words):
            shape = (2, *positions.shape, len(sincos))
            made = torch.empty(shape, dtype=dtype, device=positions.device)
            columns, fresh = Columns(made.movedim(0, -2)), True
        if columns is not None and columns.table.dtype is dtype:  # not to round twice
            turns = sincos if isinstance(positions, Tensor) else sincos.long_turns(positions)
            if _fill(columns, words, turns, factor, fresh):
                return (columns.cos, columns.sin) if out is None else None
    for each in words:
        check_memory(positions=each)
        if out is not None:
            check_out(out.table, positions=each)
    made = sincos.cos_sin(positions, dtype, out=out, factor=factor)
    return made if out is None else None


def _words(positions: Tensor | Coordinates) -> tuple[Tensor, ...]:
    """Whole positions; or the steps of coordinates, and their rests."""
    if not isinstance(positions, Coordinates):
        return (positions,)
    assert positions.rest is not None
    return positions.values, positions.rest


def _fill(
    columns: Columns,
    words: tuple[Tensor, ...],
    turns: SinCos | LongTurns,
    factor: float,
    fresh: bool,
) -> bool:
    steps, *rests = _of_one_stride(words)
    if not on_accelerator(columns.table, steps):
        return cpu.fill(columns, steps, turns, factor, fresh, *rests)
    from posenc.kernels.sincos import triton

    return triton.fill(columns, steps, turns, factor, *rests)


def _of_one_stride(words: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """All in rows of one stride; a batch may share its positions."""
    if words[0].ndim == 1 and (len(words) == 1 or words[0].stride() == words[1].stride()):
        return words
    return tuple(each.contiguous() for each in words)


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
