"""Rotation of queries and keys: C, Triton, or else ``reference.py``."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from posenc._guards import dense, eager
from posenc.kernels.accelerator import served
from posenc.kernels.rotary import cpu as native
from posenc.kernels.rotary import reference
from posenc.kernels.rotary.strides import RotaryLayout
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
    """``posenc.kernels.rotary.reference.rotate``, bit for bit, by the fastest way.

    Example:
        >>> quarter = torch.tensor([0.0]), torch.tensor([1.0])
        >>> rotate(torch.tensor([1.0, 2.0, 3.0]), *quarter)
        tensor([-2.,  1.,  3.])
    """
    if eager() and not _recorded(x, cos, sin, out):
        layout = RotaryLayout(pairing == "interleaved", rotated == "suffix", True, conjugate)
        made = _turned_once(x, cos, sin, layout, out)
        if made is not None:
            return made
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
    names of things, says why or runs the reference.

    Args:
        contents: One or two of ``[*batch, heads, seq, head_dim]``, or ``[*batch, seq, heads,
            head_dim]``, with one batch axis at most.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes.
        layout: How.
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
    if is_dynamo_compiling():
        return None
    if not torch.is_grad_enabled() or not _recorded(table, *contents, *(outs or ())):
        made = native.turn_heads(contents, table, positions, layout, outs, width)
        if made is not None or (width is not None and contents[0].shape[-1] != width):
            return made
        if served(table, positions, *contents, *(outs or ())) and eager():
            from posenc.kernels.rotary import triton as accelerated

            return accelerated.turn_heads(contents, table, positions, layout, outs)
        return None
    if not eager() or outs is not None or table.requires_grad:
        return None
    if not dense(table, *contents) and not served(table, positions, *contents):
        return None
    if width is not None and contents[0].shape[-1] != width:
        return None
    return _Turned.apply(table, positions, layout, *contents)


class _Turned(torch.autograd.Function):
    """A rotation of heads; its gradient is the rotation backwards."""

    @staticmethod
    def forward(ctx, table, positions, layout, *contents):
        ctx.save_for_backward(table, positions)
        ctx.layout = layout
        ctx.set_materialize_grads(False)
        return _turned(contents, table, positions, layout)

    @staticmethod
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride]
        table, positions = ctx.saved_tensors
        back = ctx.layout._replace(conjugate=not ctx.layout.conjugate)
        known = tuple([gradient for gradient in gradients if gradient is not None])
        turned = iter(_turned(known, table, positions, back)) if known else iter(())
        return None, None, None, *[None if g is None else next(turned) for g in gradients]


def _turned(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
) -> tuple[Tensor, ...]:
    # Gradients come in any shape of memory, inside vmap too, and may need gradients themselves.
    made = rotate_heads(contents, table, positions, layout=layout)
    return by_reference(contents, table, positions, layout) if made is None else made


def by_reference(
    contents: tuple[Tensor, ...],
    table: Float[Tensor, "*rows 2 pairs"],
    positions: Int64[Tensor, "*batch seq"] | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...]:
    """What ``rotate_heads`` means: ``reference.rotate_heads`` of each; arguments as there.

    Example:
        >>> x, table = torch.ones(1, 1, 2), torch.tensor([[[0.0], [1.0]]])
        >>> by_reference((x,), table, None, RotaryLayout())
        (tensor([[[-1.,  1.]]]),)
    """
    return tuple(
        reference.rotate_heads(
            x,
            table,
            positions,
            pairing="interleaved" if layout.interleaved else "half",
            rotated="suffix" if layout.suffix else "prefix",
            heads_first=layout.heads_first,
            conjugate=layout.conjugate,
            out=out,
        )
        for x, out in zip(contents, outs or (None,) * len(contents), strict=True)
    )


def _turned_once(
    x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout, out: Tensor | None
) -> Tensor | None:
    if not served(x, cos, sin, out):
        return native.turn(x, cos, sin, layout, out)
    from posenc.kernels.rotary import triton as accelerated

    return accelerated.turn(x, cos, sin, layout, out)


def _recorded(*tensors: Tensor | None) -> bool:
    """Whether autograd records what is done with these."""
    if not torch.is_grad_enabled():
        return False
    return any(x is not None and x.requires_grad for x in tensors)
