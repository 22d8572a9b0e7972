"""Tables of cosines and sines: C, Triton, or else ``SinCos.cos_sin``."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._guards import dense, eager
from posenc.kernels.accelerator import served
from posenc.kernels.sincos import cpu as native
from posenc.numerics.sincos import SinCos, empty_table
from posenc.positions import checked


def cos_sin(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"],
    dtype: torch.dtype = torch.float32,
    out: tuple[Tensor, Tensor] | None = None,
    factor: float = 1.0,
    fresh: bool = False,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """``sincos.cos_sin``, correctly rounded as it is, by the fastest way.

    Args:
        sincos: The frequencies and their arithmetic.
        positions: int64, of any shape.
        dtype: The dtype of the tables.
        out: Two tables that exist already, strided or not.
        factor: The attention factor of a schedule.
        fresh: Whether ``out`` is memory that nothing has been written to.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> cos, sin = cos_sin(SinCos(Geometric(4)), torch.tensor([2**62]))
        >>> sin
        tensor([[-0.7029,  0.4043]])
    """
    if sincos.common is None and dtype in native.FORMATS and eager():
        positions = checked(positions)
        if out is None and (dense(positions) or served(positions)):
            shape = (2, *positions.shape, len(sincos))
            cos, sin = torch.empty(shape, dtype=dtype, device=positions.device)
            if _fill(cos, sin, positions, sincos.turns, factor, fresh=True):
                return cos, sin
        elif (
            out is not None
            and out[0].dtype is dtype
            and _fill(*out, positions, sincos.turns, factor, fresh)
        ):
            return out
    return sincos.cos_sin(positions, dtype, out=out, factor=factor)


def _fill(
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    turns: tuple[int, ...],
    factor: float,
    fresh: bool,
) -> bool:
    if not served(cos, sin, positions):
        return native.fill(cos, sin, positions, turns, factor, fresh)
    from posenc.kernels.sincos import triton as accelerated

    return accelerated.fill(cos, sin, positions, turns, factor)


def table_to_fill(
    positions: Int64[Tensor, "*shape"],
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
    if out is None:
        return empty_table(positions, *columns, dtype=dtype or torch.float32)
    shape, dtype = (*positions.shape, *columns), dtype or out.dtype
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(
            f"out is {out.dtype} {tuple(out.shape)}; the table is {dtype} {shape}. Build it with "
            f"torch.empty{shape}, or leave it out."
        )
    return out
