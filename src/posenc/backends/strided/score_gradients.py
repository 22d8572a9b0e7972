"""Gradients of scores, formed for a few queries at a time and forgotten."""

import torch
from torch import Tensor

from posenc.backends.strided.blocks import ROWS, Block, bias_of
from posenc.backends.strided.flash import capped
from posenc.backends.strided.results import Backward

ELEMENTS = 2**19  # scores held at a time in the backward pass: their three tensors stay in a cache


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


def add_gradients(block: Block, grads: list[Tensor], run: Backward) -> None:
    """Add what one block gives to the gradients of q, k, v and the values of ``bias``.

    dS = P ∘ (dO Vᵀ − δ) is the gradient of the scores, and the bias at one distance receives the
    sum of its diagonal of dS. All is formed in the dtype of ``grads``.
    """
    dq, dk, dv, dvalues = grads
    wide, (q, k, v) = dvalues.dtype, run.content
    bias, merged, scale, softcap = run.bias, run.merged, run.scale, run.softcap
    group = q.shape[1] // k.shape[1]
    rows, columns = (block.heads, block.queries), (block.kv_heads, block.keys)

    def of_queries(t: Tensor) -> Tensor:
        """In reverse order, by key head: [batch, kv_heads, group, rows, width]."""
        return t[:, *rows].flip(-2).to(wide).unflatten(1, (-1, group))

    queries, grad_outs = of_queries(q), of_queries(merged.grad)
    lse, delta = (of_queries(t.unsqueeze(-1)) for t in (merged.lse, merged.delta))
    keys, values = (t[:, *columns].to(wide).unsqueeze(2) for t in (k, v))
    mask = bias_of(block, bias).expand(1, q[:, block.heads].shape[1], -1, -1)
    scaled = queries * scale
    scores = capped(torch.matmul(scaled, keys.mT), softcap)
    # The derivative of c · tanh(s / c) is 1 − tanh².
    slope = None if softcap is None else 1 - (scores / softcap).square_()
    weights = scores.add_(mask.unflatten(1, (-1, group))).sub_(lse).exp_()
    dv[:, *columns] += (weights.mT @ grad_outs).sum(2)
    # One column more of each takes δ off within the product.
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
