"""What rotary encodings share: cosines and sines of a schedule, and how heads meet their table."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from posenc.encodings.shapes import CosSinRows, Heads
from posenc.frequencies import Schedule
from posenc.kernels.rotary.front import RotaryLayout, rotate
from posenc.kernels.rotary.front import rotate_heads as rotate_together
from posenc.kernels.sincos.front import rotation_table as rotation_table
from posenc.numerics.pairing import Pairing
from posenc.numerics.sincos import Arithmetic, SinCos
from posenc.positions.checks import is_one_a_row


def sincos_of(schedule: Schedule, arithmetic: Arithmetic = "exact") -> SinCos:
    """The cosines and sines of a schedule, made once and kept with it."""
    name = "_sincos_" + arithmetic
    found = getattr(schedule, name, None)
    if found is None:
        found = SinCos(schedule, arithmetic)
        object.__setattr__(schedule, name, found)
    return found


def rotate_heads(
    x: Heads,
    table: CosSinRows,
    layout: RotaryLayout,
    head_dim: int,
    rotated_dim: int,
    out: Tensor | None = None,
) -> Heads:
    """Heads rotated by one row of ``table`` a token; ``out=x`` rotates in place."""
    if x.shape[-1] != head_dim or 2 * table.shape[-1] != rotated_dim:
        check_widths((x,), table, head_dim, rotated_dim)
    contents = (x,)
    outs = None if out is None else contents if out is x else (out,)
    return rotate_together(contents, table, None, layout, outs)[0]


def check_widths(contents: Sequence[Tensor], table: Tensor, head_dim: int, rotated_dim: int):
    """Refuse heads or a table of another width, of which some channels would stay as they are."""
    for x in contents:
        if x.shape[-1] != head_dim:
            raise ValueError(f"x has heads of width {x.shape[-1]}; head_dim is {head_dim}.")
    if 2 * table.shape[-1] != rotated_dim:
        wanted = (
            f"{rotated_dim} channels rotate, so it must be [*batch, seq, 2, {rotated_dim // 2}]"
        )
        raise ValueError(f"The table has shape {tuple(table.shape)}; {wanted}.")


def rotate_each_head(
    x: Heads, table: Float[Tensor, "*rows 2 heads pairs"], *, pairing: Pairing, heads_first: bool
) -> Heads:
    """Heads rotated, each by angles of its own: a row of ``table`` has one for every head."""
    heads = x.shape[-3 if heads_first else -2]
    check_rows(x, table, (2, heads, x.shape[-1] // 2), heads_first)
    cos, sin = table.unbind(-3)
    if heads_first:
        cos, sin = cos.transpose(-2, -3), sin.transpose(-2, -3)
    return rotate(x, cos, sin, pairing=pairing)


def check_rows(x: Tensor, table: Tensor, row: tuple[int, ...], heads_first: bool) -> None:
    """Refuse a table that has not one such row for each token of ``x``, and might broadcast."""
    tokens, lead = x.shape[-2 if heads_first else -3], table.shape[: -len(row) - 1]
    shape = (tokens, *row)
    if table.shape[len(lead) :] != shape or not is_one_a_row(lead, x.shape[:-3]):
        shapes = f"x has shape {tuple(x.shape)} and the table {tuple(table.shape)}"
        raise ValueError(f"{shapes}; it must be [*batch, {', '.join(map(str, shape))}].")


def check_key_heads(k: Tensor, built: int, heads_first: bool) -> None:
    """Refuse keys of other heads than an encoding with parameters of each key head has."""
    heads = k.shape[-3 if heads_first else -2]
    if heads != built:
        raise ValueError(f"Keys have {heads} heads; the encoding was built with heads={built}.")
