"""Rotation of queries and keys: C, Triton, or else ``reference.py``."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import eager, kernels_reach, on_accelerator, recorded
from posenc.kernels.out import check_memory, check_written
from posenc.kernels.rotary import cpu, reference
from posenc.kernels.rotary.layout import RotaryLayout as RotaryLayout
from posenc.numerics.pairing import Pairing, Rotated


def rotate(
    x: Float[Tensor, "*shape head_dim"],
    cos: Float[Tensor, "*rows pairs"],
    sin: Float[Tensor, "*rows pairs"],
    *,
    pairing: Pairing = "half",
    rotated: Rotated = "prefix",
    conjugate: bool = False,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape head_dim"]:
    """``posenc.kernels.rotary.reference.rotate``, bit for bit, by the fastest kernel there is.

    Example:
        >>> quarter = torch.tensor([0.0]), torch.tensor([1.0])
        >>> rotate(torch.tensor([1.0, 2.0, 3.0]), *quarter)
        tensor([-2.,  1.,  3.])
    """
    reference.check_rotation(x, cos, sin, pairing, rotated)
    if eager() and not recorded(x, cos, sin, out):
        layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", True, conjugate)
        made = _rotate_by_kernel(x, cos, sin, layout, out)
        if made is not None:
            return made
    check_memory(x=x, cos=cos, sin=sin)
    return reference.rotate(
        x, cos, sin, pairing=pairing, rotated=rotated, conjugate=conjugate, out=out
    )


def rotate_heads(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None = None,
    *,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
    width: int | None = None,
) -> tuple[Tensor, ...] | None:
    """Heads rotated in C or Triton, queries and keys in one call; ``None`` if neither takes them.

    Nothing is checked in words here: what does not fit is not taken, and the caller, who knows the
    names of things, says why or asks for ``by_reference``.

    Args:
        contents: One or two of ``[*batch, heads, seq, head_dim]``, or ``[*batch, seq, heads,
            head_dim]``, with one batch axis at most.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes.
        layout: How heads lie and which channels are rotated.
        outs: Where to write; ``contents`` itself rotates in place.
        width: What the heads must have, if that is to be checked.

    Raises:
        IndexError: A position is not a row of the table. On an accelerator its token is NaN
            instead: raising would have to wait.

    Example:
        >>> x, table = torch.randn(2, 3, 5, 8), torch.randn(5, 2, 4)
        >>> made = rotate_heads((x,), table, layout=RotaryLayout())
        >>> cos, sin = table.unbind(-2)
        >>> made is None or torch.equal(made[0], reference.rotate(x, cos, sin))
        True
    """
    if not eager():
        return None
    if not torch.is_grad_enabled() or not recorded(table, *contents, *(outs or ())):
        if contents[0].is_cpu:
            made = cpu.rotate_heads(contents, table, positions, layout, outs, width)
            if made is not None:
                return made
        return _on_accelerator(contents, table, positions, layout, outs, width)
    if outs is not None or table.requires_grad or not kernels_reach(table, positions, *contents):
        return None
    if not _fit(contents, table, positions, layout, width):
        return None
    return _Rotated.apply(table, positions, layout, *contents)


def by_reference(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """What ``rotate_heads`` means: ``reference.rotate_heads`` of each; arguments as there.

    All are rotated and checked before any is written, so what is written may share memory with
    content, and a refusal leaves all as they were.

    Raises:
        IndexError: A position is not a row of the table.
        ValueError: ``outs`` have other shapes or dtypes than content, or elements that share a
            place, or share memory with the table, with positions or with each other; or an operand
            has no memory.

    Example:
        >>> x, table = torch.ones(1, 1, 2), torch.tensor([[[0.0], [1.0]]])
        >>> by_reference((x,), table, None, RotaryLayout())
        (tensor([[[-1.,  1.]]]),)
    """
    for x in contents:
        check_memory(x=x, table=table, positions=positions)
    made = [
        reference.rotate_heads(
            x,
            table,
            positions,
            pairing=layout.pairing,
            rotated=layout.rotated,
            heads_first=layout.heads_first,
            conjugate=layout.conjugate,
        )
        for x in contents
    ]
    if outs is None:
        return tuple(made)
    read: dict[str, Tensor | None] = {"table": table, "positions": positions}
    for x, out in zip(made, outs, strict=True):
        check_written(x, out, **read)
        read["the other out"] = out
    for x, out in zip(made, outs, strict=True):
        out.copy_(x)
    return outs


def _fit(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    width: int | None,
) -> bool:
    """Whether heads have this width and one row a token; the reference would broadcast others."""
    rows = table.shape[:-2] if positions is None else positions.shape
    width = contents[0].shape[-1] if width is None else width
    for x in contents:
        batch, tokens = x.shape[:-3], x.shape[-2:-1] if layout.heads_first else x.shape[-3:-2]
        if x.ndim < 3 or x.shape[-1] != width or rows[-1:] != tokens or len(rows) > x.ndim - 2:
            return False
        if any(r not in (1, b) for r, b in zip(rows[-2::-1], batch[::-1], strict=False)):
            return False
    return True


class _Rotated(torch.autograd.Function):
    """A rotation of heads; its gradient is the rotation backwards."""

    @staticmethod
    def forward(ctx, table, positions, layout, *contents):
        ctx.save_for_backward(table, positions)
        ctx.layout = layout
        ctx.set_materialize_grads(False)
        return _rotated(contents, table, positions, layout)

    @staticmethod
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride]
        table, positions = ctx.saved_tensors
        known = tuple([gradient for gradient in gradients if gradient is not None])
        back = iter(_rotated(known, table, positions, ctx.layout.backwards()) if known else ())
        return None, None, None, *[None if g is None else next(back) for g in gradients]


def _rotated(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
) -> tuple[Tensor, ...]:
    # Gradients come in any shape of memory, inside vmap too, and may need gradients themselves.
    made = rotate_heads(contents, table, positions, layout=layout)
    return by_reference(contents, table, positions, layout) if made is None else made


def _on_accelerator(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None,
    width: int | None,
) -> tuple[Tensor, ...] | None:
    if not on_accelerator(table, positions, *contents, *(outs or ())):
        return None
    if width is not None and contents[0].shape[-1] != width:
        return None
    from posenc.kernels.rotary import triton

    return triton.rotate_heads(contents, table, positions, layout, outs)


def _rotate_by_kernel(
    x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout, out: Tensor | None
) -> Tensor | None:
    if not on_accelerator(x, cos, sin, out):
        return cpu.rotate(x, cos, sin, layout, out)
    from posenc.kernels.rotary import triton

    return triton.rotate(x, cos, sin, layout, out)
