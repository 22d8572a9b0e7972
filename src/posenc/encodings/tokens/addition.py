"""How every added encoding meets the embeddings: x · scale + table, rounded once, then dropout."""

from math import sqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from posenc.encodings.places import working_dtype

Scale = Literal["sqrt_dim"] | float | None


def factor(scale: Scale, dim: int) -> float | None:
    """The number that ``scale`` stands for: √dim, itself, or none.

    Raises:
        ValueError: ``scale`` is some other word.

    Example:
        >>> factor("sqrt_dim", 16)
        4.0
    """
    if scale == "sqrt_dim":
        return sqrt(dim)
    if isinstance(scale, str):
        raise ValueError(f"scale is {scale!r}; it must be 'sqrt_dim', a number, or None.")
    return scale


def checked_dropout(dropout: float) -> float:
    """``dropout`` if it is a probability.

    Raises:
        ValueError: It is not.
    """
    if not 0.0 <= dropout <= 1.0:
        raise ValueError(f"dropout is {dropout}; it must be a probability between 0 and 1.")
    return dropout


def add(
    x: Float[Tensor, "*batch seq dim"],
    table: Float[Tensor, "*rows seq dim"],
    *,
    name: str,
    factor: float | None = None,
    dropout: float = 0.0,
    batch_first: bool = True,
) -> Float[Tensor, "*batch seq dim"]:
    """``dropout(x · factor + table)`` in float32 at least, rounded once to the dtype of ``x``.

    Args:
        x: Embeddings ``[*batch, seq, dim]``, or ``[seq, batch, dim]`` without ``batch_first``.
        table: ``[seq, dim]`` for all rows of the batch, or ``[*batch, seq, dim]``.
        name: Who adds, for the words of an error.
        factor: What ``x`` is multiplied with first.
        dropout: Probability of dropping an element of the sum.
        batch_first: Whether the sequence is the last axis but one of ``x``, or the first.

    Raises:
        TypeError: ``x`` is not floating.
        ValueError: The width or the length of ``x`` is not that of the table, or the table has
            rows for more sequences than ``x`` holds.
    """
    if not x.is_floating_point():
        raise TypeError(
            f"x is {x.dtype}; {name} takes floating embeddings [*batch, seq, dim]. "
            f"Look token ids up in an embedding first."
        )
    if not batch_first:
        if x.ndim < 3:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; batch_first=False takes [seq, batch, dim]."
            )
        table = table.unsqueeze(1) if table.ndim == 2 else table.movedim(-2, 0)
    _check_fit(x, table, name, batch_first)
    wide = working_dtype(torch.promote_types(x.dtype, table.dtype))
    # One pass for the product and the sum; the embeddings are many times the table.
    summed = torch.add(table, x.to(wide), alpha=1 if factor is None else factor)
    return F.dropout(summed.to(x.dtype), dropout, training=dropout > 0)


def _check_fit(x: Tensor, table: Tensor, name: str, batch_first: bool) -> None:
    if x.shape[-1] != table.shape[-1]:
        raise ValueError(
            f"x has width {x.shape[-1]}; {name} was built for dim {table.shape[-1]}. "
            f"Build it with dim={x.shape[-1]}."
        )
    axis = -2 if batch_first else 0
    if x.shape[axis] != table.shape[axis]:
        raise ValueError(
            f"x has {x.shape[axis]} tokens and the table {table.shape[axis]} rows. Pass one "
            f"position a token (batch_first={batch_first} makes axis {axis} the sequence)."
        )
    # A table may serve every row of x; the other way round the output would outgrow the input.
    batch_axes = slice(0, -2) if batch_first else slice(1, -1)
    rows, batch = table.shape[batch_axes][::-1], x.shape[batch_axes][::-1]
    if len(rows) > len(batch) or any(r not in (1, b) for r, b in zip(rows, batch, strict=False)):
        raise ValueError(
            f"x has shape {tuple(x.shape)} and the table {tuple(table.shape)}. Pass positions "
            f"[seq] for all rows of x, or as many rows of positions as x has."
        )
