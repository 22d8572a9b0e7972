"""What every rotary encoding shares: the table of cosines and sines, and how heads meet it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import check_dense
from posenc.kernels.rotary.front import RotaryLayout, rotate
from posenc.kernels.rotary.front import rotate_heads as rotated_heads
from posenc.kernels.sincos.front import cos_sin, table_to_fill
from posenc.numerics.columns import Columns
from posenc.numerics.pairing import Pairing, Rotated
from posenc.numerics.sincos import SinCos
from posenc.positions import Positions, checked


def rotation_table(
    sincos: SinCos,
    positions: Int64[Tensor, "*shape"] | Positions,
    dtype: torch.dtype | None = None,
    factor: float = 1.0,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape 2 pairs"]:
    """factor · cos and factor · sin of position × frequency, each rounded once.

    Args:
        sincos: The frequencies and their arithmetic.
        positions: int64, or coordinates, of any shape.
        dtype: float32 unless another is asked for.
        factor: What both are multiplied with: the attention factor of a schedule.
        out: A table of this shape, to be filled.

    Raises:
        TypeError: ``positions`` are not integers.
        ValueError: ``out`` has another shape or dtype.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> rotation_table(SinCos(Geometric(2)), torch.tensor([0]))
        tensor([[[1.],
                 [0.]]])
    """
    positions = checked(positions, reals=True)
    table = table_to_fill(positions, 2, len(sincos), dtype=dtype, out=out)
    cos_sin(sincos, positions, table.dtype, out=Columns(table), factor=factor, fresh=out is None)
    return table


def rotate_heads(
    x: Float[Tensor, "*batch _ _ head_dim"],
    table: Float[Tensor, "*rows 2 pairs"],
    *,
    name: str,
    head_dim: int,
    rotated_dim: int,
    pairing: Pairing = "half",
    rotated: Rotated = "prefix",
    heads_first: bool = True,
    conjugate: bool = False,
    out: Tensor | None = None,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """``rotate`` with one row of ``table`` for all heads of a token.

    Args:
        x: Queries or keys ``[*batch, heads, seq, head_dim]``, or ``[*batch, seq, heads, head_dim]``
            where heads are not first.
        table: ``[seq, 2, pairs]`` for all rows of the batch, or ``[*batch, seq, 2, pairs]``.
        name: Who rotates, for the words of an error.
        head_dim: Width that ``x`` must have.
        rotated_dim: How many of its channels are rotated.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: The width or the length of ``x`` is not that of the table.
    """
    layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", heads_first, conjugate)
    contents = (x,)
    outs = None if out is None else contents if out is x else (out,)
    return rotate_together(contents, table, None, layout, name, head_dim, rotated_dim, outs)[0]


def rotate_together(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
    name: str,
    head_dim: int,
    rotated_dim: int,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """``rotate_heads`` of queries and keys in one call, with rows looked up where they are used.

    Args:
        contents: One or two tensors of heads.
        table: One row a token; with ``positions``, ``[rows, 2, pairs]``.
        positions: Which row each token takes.
        layout: How heads are rotated, and in which layout they are.
        name: Who rotates, for the words of an error.
        head_dim: Width that heads must have.
        rotated_dim: How many of their channels are rotated, two for each pair of the table.
        outs: Where to write; ``contents`` itself rotates in place.

    Raises:
        TypeError: Content or table is not floating.
        ValueError: A width or a length does not fit.
        IndexError: A position is not a row of the table.
    """
    if table.size(-1) != rotated_dim // 2:
        check_rows(table, 2, rotated_dim // 2, name=name)
    for x in contents:
        if x.size(-1) != head_dim:
            raise ValueError(
                f"x has heads of width {x.size(-1)}; {name} was built for head_dim {head_dim}."
            )
    return rotated_heads(contents, table, positions, layout, outs)


def rotate_each_head(
    x: Float[Tensor, "*batch _ _ head_dim"],
    table: Float[Tensor, "*rows 2 heads pairs"],
    *,
    name: str,
    built: int,
    head_dim: int,
    pairing: Pairing,
    heads_first: bool,
) -> Float[Tensor, "*batch _ _ head_dim"]:
    """``rotate`` where every head has angles of its own, so that keys have as many as queries.

    Args:
        x: Queries or keys.
        table: A row a token, and in it one a head.
        name: Who rotates, for the words of an error.
        built: How many heads it was built for.
        head_dim: Width that heads must have.
        pairing: Which channels form a pair.
        heads_first: The layout of ``x``.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: Width, length or number of heads is not that of the table.
    """
    row = (2, built, head_dim // 2)
    check_fit(x, table, row, name=name, head_dim=head_dim, heads_first=heads_first)
    heads = x.shape[-3 if heads_first else -2]
    if heads != built:
        raise ValueError(
            f"{name} was built for {built} heads; content has {heads}. Build "
            f"{name}(heads={heads}), with as many key heads as query heads."
        )
    cos, sin = table.unbind(-3)
    if heads_first:
        cos, sin = cos.transpose(-2, -3), sin.transpose(-2, -3)
    return rotate(x, cos, sin, pairing=pairing)


def check_fit(
    x: Tensor,
    table: Tensor,
    row: tuple[int, ...],
    *,
    name: str,
    head_dim: int,
    heads_first: bool,
) -> None:
    """Refuse content and a table that are not of one encoding and of the same tokens.

    Args:
        x: Queries or keys.
        table: What positions say.
        row: The shape of what it says of one token.
        name: Whose they must be.
        head_dim: Width that ``x`` must have.
        heads_first: The layout of ``x``.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: Something does not fit.
    """
    check_rows(table, *row, name=name)
    *lead, tokens = table.shape[: -len(row)]
    checked_heads(x, tokens, name=name, head_dim=head_dim, heads_first=heads_first)
    _check_batch(x, lead)


def check_key_heads(k: Tensor, built: int, *, name: str, heads_first: bool) -> None:
    """Refuse keys of other heads than an encoding with parameters of each key head was built for.

    Content without an axis of heads is left to ``check_fit``.

    Raises:
        ValueError: There are more or fewer.

    Example:
        >>> check_key_heads(torch.zeros(1, 4, 5, 8), 2, name="FoPE", heads_first=True)
        Traceback (most recent call last):
        ...
        ValueError: FoPE was built for 2 key heads; keys have 4. Build it with heads=4.
    """
    heads = k.shape[-3 if heads_first else -2] if k.ndim > 2 else built
    if heads != built:
        raise ValueError(
            f"{name} was built for {built} key heads; keys have {heads}. Build it with "
            f"heads={heads}."
        )


def _check_batch(x: Tensor, lead: Sequence[int]) -> None:
    try:
        fits = torch.broadcast_shapes(x.shape[:-3], lead) == x.shape[:-3]
    except RuntimeError:  # neither is 1
        fits = False
    if not fits:
        raise ValueError(
            f"x has batch axes {tuple(x.shape[:-3])} and the table {tuple(lead)}. Pass "
            f"positions [seq] for all rows alike, or one row of them for each."
        )


def check_rows(table: Tensor, *row: int, name: str) -> None:
    """Refuse a table of another width, of which some channels would be turned, or broadcast.

    Args:
        table: What positions say.
        row: The shape of what it says of one token.
        name: Whose table it must be.

    Raises:
        ValueError: Its rows have another shape.

    Example:
        >>> check_rows(torch.zeros(5, 2, 2), 2, 4, name="Rotary")
        Traceback (most recent call last):
        ...
        ValueError: The table has shape (5, 2, 2); this Rotary takes rows of shape (2, 4). Give it \
its own table.
    """
    if table.shape[-len(row) :] != row or table.ndim <= len(row):
        raise ValueError(
            f"The table has shape {tuple(table.shape)}; this {name} takes rows of shape {row}. "
            f"Give it its own table."
        )


def checked_heads(x: Tensor, rows: int, *, name: str, head_dim: int, heads_first: bool) -> None:
    """Refuse content that does not fit an encoding and its table.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: The width or the length of ``x`` does not fit.
    """
    check_dense(x=x)
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; {name} takes floating queries and keys.")
    if x.ndim < 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; {name} takes [*batch, heads, seq, head_dim], or "
            f"[*batch, seq, heads, head_dim] with heads_first=False."
        )
    if x.shape[-1] != head_dim:
        raise ValueError(
            f"x has heads of width {x.shape[-1]}; {name} was built for head_dim {head_dim}. "
            f"Build it with head_dim={x.shape[-1]}."
        )
    axis = -2 if heads_first else -3
    if x.shape[axis] != rows:
        raise ValueError(
            f"x has {x.shape[axis]} tokens and the table {rows} rows. Pass one position a token "
            f"(heads_first={heads_first} makes axis {axis} the sequence)."
        )
