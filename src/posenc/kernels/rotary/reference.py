"""The meaning of a rotation, in plain tensor operations; kernels are proven equal to it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import working_dtype
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rows import rows_at
from posenc.numerics.pairing import Pairing, Rotated, split
from posenc.numerics.product import joined


def rotate(
    x: Float[Tensor, "*shape head_dim"],
    cos: Float[Tensor, "*rows pairs"],
    sin: Float[Tensor, "*rows pairs"],
    *,
    pairing: Pairing = "half",
    rotated: Rotated = "prefix",
    conjugate: bool = False,
) -> Float[Tensor, "*shape head_dim"]:
    """Each pair (a, b) rotated by its angle, in float32 at least and rounded once.

    (a, b) → (a cos − b sin, b cos + a sin)

    Args:
        x: Content; its last axis is at least ``2 · pairs`` wide, and what is wider passes through.
        cos: Cosines, times a factor if there is one; its leading axes broadcast against ``x``.
        sin: Sines likewise.
        pairing: Which channels form a pair.
        rotated: Whether the first (``prefix``) or the last (``suffix``) channels are rotated.
        conjugate: Whether to rotate backwards, by −angle.

    Reference:
        Su et al. 2021, "RoFormer", equation 34 (arXiv:2104.09864).

    Example:
        >>> quarter = torch.tensor([0.0]), torch.tensor([1.0])
        >>> rotate(torch.tensor([1.0, 2.0, 3.0]), *quarter)
        tensor([-2.,  1.,  3.])
    """
    _check(x, cos, sin)
    width = 2 * cos.shape[-1]
    rest = x.shape[-1] - width
    begin = 0 if rotated == "prefix" else rest
    end = begin + width
    wide = torch.promote_types(working_dtype(x.dtype), working_dtype(cos.dtype))
    a, b = (channels.to(wide) for channels in split(x[..., begin:end] if rest else x, pairing))
    if conjugate:
        sin = -sin
    first, second = (a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype)
    if pairing == "interleaved":
        parts = [joined((first, second), -1, torch.stack).flatten(-2)]
    else:
        parts = [first, second]
    if rest:
        kept = x[..., end:] if rotated == "prefix" else x[..., :begin]
        parts = [*parts, kept] if rotated == "prefix" else [kept, *parts]
    return joined(parts, -1) if len(parts) > 1 else parts[0]


def _check(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Refuse what would broadcast sines to other pairs, or ``x`` to other tokens."""
    if not (x.is_floating_point() and cos.is_floating_point()):
        raise TypeError(f"x is {x.dtype} and cos {cos.dtype}; both must be floating.")
    if cos.shape != sin.shape:
        raise ValueError(f"cos has shape {tuple(cos.shape)} and sin {tuple(sin.shape)}.")
    if x.shape[-1] < 2 * cos.shape[-1]:
        raise ValueError(
            f"x is {x.shape[-1]} channels wide; {cos.shape[-1]} pairs need {2 * cos.shape[-1]}."
        )
    held = x.shape[max(x.ndim - cos.ndim, 0) : -1]
    if cos.ndim > x.ndim or any(
        row not in (1, size) for row, size in zip(cos.shape[:-1], held, strict=True)
    ):
        raise ValueError(
            f"cos has shape {tuple(cos.shape)}, which does not broadcast to x, {tuple(x.shape)}."
        )


def rotate_heads(
    x: Float[Tensor, "*shape head_dim"],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
) -> Float[Tensor, "*shape head_dim"]:
    """``rotate`` with one row of ``table`` for all heads of a token; see ``front.rotate_heads``."""
    if positions is not None:
        table = rows_at(table, positions)
    tokens = x.shape[-2 if layout.heads_first else -3]
    if table.shape[-3] != tokens:
        raise ValueError(
            f"Content has {tokens} tokens and the table {table.shape[-3]} rows; "
            f"heads_first=False takes [batch, seq, heads, head_dim]."
        )
    cos, sin = table.unsqueeze(-4 if layout.heads_first else -3).unbind(-2)
    return rotate(
        x, cos, sin,
        pairing=layout.pairing, rotated=layout.rotated, conjugate=layout.conjugate,
    )  # fmt: skip
