"""The same attention where the bias learns: a backward pass that never holds queries × keys."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.blocks import ROWS, Block, blocks
from posenc.backends.strided.differentiable import once_differentiable
from posenc.backends.strided.flash import capped
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.backends.strided.wide_blocks import attend
from posenc.numerics.product import without_autocast

ELEMENTS = 2**19  # scores held at a time in the backward pass: their three tensors stay in a cache


def attend_and_learn(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    bias: Toeplitz,
    offset: int,
    *,
    scale: float,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """``attend_in_blocks`` with a gradient to ``bias.values`` too.

    With weights P and gradients dO of the output, dS = P ∘ (dO Vᵀ − rowsum(dO ∘ O)) is the
    gradient of the scores; the bias at one distance receives the sum of its diagonal of dS. Both
    are formed for a few queries at a time and forgotten. All is formed in the dtype of the bias:
    an O rounded to 16 bits would leave rowsum(dO ∘ O) off by as much as some of these sums are.
    """
    return _Attention.apply(q, k, v, bias.values, bias.highest, offset, scale)  # type: ignore[return-value]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        values: Tensor,
        highest: int,
        offset: int,
        scale: float,
    ) -> Tensor:
        # Torch leaves its fused operation for a mask that learns, also where nothing is recorded.
        frozen = Toeplitz(values.detach(), highest)
        wide_q, wide_k, wide_v = (t.to(values.dtype) for t in (q, k, v))
        with without_autocast(q):
            out = attend(wide_q, wide_k, wide_v, frozen, offset, scale=scale)
        ctx.save_for_backward(q, k, v, values, out)
        ctx.constants = highest, offset, scale
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, values, out = ctx.saved_tensors
        highest, offset, scale = ctx.constants
        bias = Toeplitz(values, highest)
        wide = values.dtype
        grads = [torch.zeros_like(t, dtype=wide) for t in (q, k, v, values)]
        for block in blocks(q.shape, k.shape, bias, offset):
            for part in narrowed(block, len(q)):
                add_gradients(part, grads, q, k, v, bias, out, grad, scale)
        dq, dk, dv, dvalues = grads
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), dvalues, None, None, None


def narrowed(block: Block, batch: int) -> list[Block]:
    """The block, cut into so few heads, and then so few queries, that their scores stay small.

    Heads go first: gradients of all keys of a head are written once for each run of queries.
    """
    if block.keys.start == block.keys.stop:
        return []
    kv_heads, k_len = block.kv_heads.stop - block.kv_heads.start, block.keys.stop - block.keys.start
    group = (block.heads.stop - block.heads.start) // kv_heads
    queries = block.queries.stop - block.queries.start
    together = max(1, min(kv_heads, ELEMENTS // (batch * group * k_len * min(queries, ROWS))))
    rows = max(1, ELEMENTS // (batch * group * together * k_len))
    return [
        Block(
            slice(head * group, min(head + together, block.kv_heads.stop) * group),
            slice(head, min(head + together, block.kv_heads.stop)),
            slice(start, min(start + rows, block.queries.stop)),
            block.keys,
            block.first - (block.queries.stop - min(start + rows, block.queries.stop)),
        )
        for head in range(block.kv_heads.start, block.kv_heads.stop, together)
        for start in range(block.queries.start, block.queries.stop, rows)
    ]


def add_gradients(
    block: Block,
    grads: list[Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Toeplitz,
    out: Tensor,
    grad: Tensor,
    scale: float,
    *,
    lse: Tensor | None = None,
    softcap: float | None = None,
) -> None:
    """Add what one block gives to the gradients of q, k, v and the values of ``bias``.

    Args:
        block: Queries and the keys that they see.
        grads: Of q, k, v and the values of ``bias``, in their dtype.
        q: Queries.
        k: Keys.
        v: Values.
        bias: The bias of every distance.
        out: What attention gave.
        grad: The gradient of that.
        scale: What products are multiplied with.
        lse: The log-sum-exp of the scores of each query, where it has keys elsewhere too.
        softcap: c in c · tanh(products / c), before the bias is added.
    """
    dq, dk, dv, dvalues = grads
    wide = dvalues.dtype
    group = q.shape[1] // k.shape[1]
    rows, columns = (block.heads, block.queries), (block.kv_heads, block.keys)

    def of_queries(t: Tensor) -> Tensor:
        """In reverse order, by key head: [batch, kv_heads, group, rows, width]."""
        return t[:, *rows].flip(-2).to(wide).unflatten(1, (-1, group))

    queries, outs, grad_outs = of_queries(q), of_queries(out), of_queries(grad)
    keys, values = (t[:, *columns].to(wide).unsqueeze(2) for t in (k, v))
    seen = Toeplitz(bias.values if len(bias.values) == 1 else bias.values[block.heads],
                    bias.highest)  # fmt: skip
    mask = seen.reversed_rows(queries.shape[-2], keys.shape[-2], first=block.first)
    mask = mask.expand(1, q[:, block.heads].shape[1], -1, -1).unflatten(1, (-1, group))
    scaled = queries * scale
    scores = capped(torch.matmul(scaled, keys.mT), softcap)
    # The derivative of c · tanh(s / c) is 1 − tanh².
    slope = None if softcap is None else 1 - (scores / softcap).square_()
    scores = scores.add_(mask)
    if lse is None:
        weights = scores.softmax(-1)
        if not bool(seen.values.isfinite().all()):  # a query may see none
            weights.nan_to_num_(0.0)
    else:
        weights = scores.sub_(of_queries(lse.unsqueeze(-1))).exp_()
    dv[:, *columns] += (weights.mT @ grad_outs).sum(2)
    # One column more of each takes δ off within the product.
    delta = (grad_outs * outs).sum(-1, keepdim=True)
    ones = values.new_ones(*values.shape[:-1], 1)
    to_weights = torch.cat((grad_outs, -delta), -1) @ torch.cat((values, ones), -1).mT
    room = shearing(to_weights)
    scores = torch.mul(to_weights, weights, out=room[..., : keys.shape[-2]])
    products = scores if slope is None else slope.mul_(scores)
    dq[:, *rows] += (products @ keys).mul_(scale).flatten(1, 2).flip(-2)
    dk[:, *columns] += (products.mT @ scaled).sum(2)
    if not bias.values.requires_grad:
        return
    along = anti_diagonals(room if len(room) == 1 else room.sum(0, keepdim=True))
    first = bias.highest - block.first
    if len(bias.values) == 1:
        dvalues[:, first : first + along.shape[-1]] += along.sum(0)
    else:
        dvalues[block.heads, first : first + along.shape[-1]] += along


def shearing(like: Tensor) -> Tensor:
    """Room for matrices [..., rows, columns] with as many zeros behind each row as it has rows."""
    rows, columns = like.shape[-2:]
    room = like.new_empty(*like.shape[:-1], columns + rows)
    room[..., columns:] = 0.0
    return room


def anti_diagonals(room: Tensor) -> Tensor:
    """Matrices in such room → [heads, rows + columns − 1]: sums where row + column is constant."""
    rows, width = room.shape[-2:]
    # A row one longer than the result shifts each row by one when it is read as rows of that.
    shifted = room.flatten(-2)[..., : rows * (width - 1)]
    return shifted.unflatten(-1, (rows, width - 1)).sum(-2)[0].flatten(0, 1)
