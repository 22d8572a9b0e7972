"""The gradients of a run of queries and keys, block by block, each added where it belongs.

Of the scores, dS = P ∘ (dO Vᵀ − δ) is formed for a few queries at a time and forgotten; or torch's
fused operation forms it. Where far keys share one learned number, as those of T5's last bucket do,
dS is formed for a band of near keys alone. Its sum over the far keys of one side is that of the row
less that of all other keys. Where there are far keys on both sides, attention to those of the
smaller side, with output o and log-sum-exp l, gives their sum: Σ exp(l − L) (dO · o − δ).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from posenc.backends.strided.blocks import (
    ROWS,
    Block,
    bias_of,
    blocks,
    content_of,
    dead_rows,
)
from posenc.backends.strided.flash import capped, flash, flash_gradients, serves
from posenc.backends.strided.results import Backward
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.encodings.base import working_dtype

ELEMENTS = 2**19  # scores held at a time: their three tensors stay in a cache


def add_all_gradients(grads: list[Tensor], run: Backward) -> None:
    """Add the gradients of queries, keys, values and the bias, to which others may add theirs."""
    (q, k, v), bias = run.content, run.bias
    # Sums of rows would be rounded to 16 bits, and be divided by a scale of 0.
    exact = working_dtype(q.dtype) == q.dtype and (run.merged.alone or run.scale != 0)
    learns = bias.values.requires_grad
    shares = learns and exact and run.softcap is None and may_share(q, k, v, bias)
    if shares:
        run = run._replace(bias=replace(bias, values=bias.values.detach()))
        add = _sharing(grads, run)
    else:
        formed = learns or not serves(q, v, run.softcap)
        add = partial(_add_formed if formed else _add_fused, grads, run)
    for block in blocks(q.shape, k.shape, bias, run.offset):
        if block.keys.start != block.keys.stop:
            add(block)


def _add_formed(grads: list[Tensor], run: Backward, block: Block) -> None:
    for rows in narrowed(block, len(run.content[0])):
        add_gradients(rows, grads, run)


def _add_fused(grads: list[Tensor], run: Backward, block: Block) -> None:
    _add(grads, block, _gradients(block, run))


def _sharing(grads: list[Tensor], run: Backward) -> Callable[[Block], None]:
    """What adds the gradients of a block where far keys share a number that is learned.

    Where keys lie elsewhere too, rows of the gradient of the scores do not sum to zero. One channel
    more, of ones in the keys and of zeros in all else, then gives these sums as the gradient of one
    channel more in the queries.
    """
    merged = run.merged
    if merged.alone:

        def add_alone(block: Block) -> None:
            _add_fused(grads, run, block)
            add_to_bias(block, grads[3], run)

        return add_alone
    q, k, v = run.content
    wider = pad(q, (0, 1)), pad(k, (0, 1), value=1.0), pad(v, (0, 1))
    of_wider = merged._replace(out=pad(merged.out, (0, 1)), grad=pad(merged.grad, (0, 1)))
    wide_run = run._replace(content=wider, merged=of_wider)
    sums = merged.lse.new_zeros(merged.lse.shape)

    def add(block: Block) -> None:
        made = _gradients(block, wide_run)
        sums[:, block.heads, block.queries] = made[0][..., -1] / run.scale
        _add(grads, block, [t[..., :-1] for t in made])
        add_to_bias(block, grads[3], run, sums)

    return add


def _gradients(block: Block, run: Backward) -> list[Tensor]:
    """Those of queries, keys and values, by torch's fused operation."""
    merged, where = run.merged, (slice(None), block.heads, block.queries)
    grad, out, lse = merged.grad[where].flip(-2), merged.out[where].flip(-2), merged.lse[where]
    some, mask = content_of(block, *run.content), bias_of(block, run.bias)
    dq, *others = flash_gradients(grad, *some, out, lse.flip(-1), mask, scale=run.scale)
    return [dq.flip(-2), *others]


def _add(grads: list[Tensor], block: Block, made: list[Tensor]) -> None:
    grads[0][:, block.heads, block.queries] += made[0]
    for total, new in zip(grads[1:3], made[1:], strict=True):
        total[:, block.kv_heads, block.keys] += new


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
    found, (last_head, last) = [], (block.kv_heads.stop, block.queries.stop)
    for head in range(block.kv_heads.start, last_head, together):
        some = slice(head, min(head + together, last_head))
        of = slice(some.start * group, some.stop * group), some
        for start in range(block.queries.start, last, rows):
            stop = min(start + rows, last)
            first = block.first - (last - stop)
            found.append(Block(*of, slice(start, stop), block.keys, first))
    return found


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


def may_share(q: Tensor, k: Tensor, v: Tensor, bias: Toeplitz) -> bool:
    """Whether most keys are far from most queries, and torch's fused operation takes these."""
    if bias.shared_from is None or not serves(q, v):
        return False
    return q.shape[2] >= ROWS and 2 * (ROWS + 2 * bias.shared_from) <= k.shape[2]


def add_to_bias(
    block: Block, dvalues: Float[Tensor, "heads count"], run: Backward, sums: Tensor | None = None
) -> None:
    """Add what a block of all keys gives to the bias, by the sums of rows of dS if they are not 0.

    It goes a few queries at a time: the fewer, the narrower is their band.
    """
    if block.keys.start == block.keys.stop:
        return
    last = block.queries.stop
    for start in range(block.queries.start, last, ROWS):
        queries = slice(start, min(start + ROWS, last))
        some = replace(block, queries=queries, first=block.first - (last - queries.stop))
        _add_to_bias(some, dvalues, run, sums)


def _add_to_bias(rows: Block, dvalues: Tensor, run: Backward, sums: Tensor | None) -> None:
    bias, offset = run.bias, run.offset
    reach, (begin, end) = bias.shared_from, (rows.keys.start, rows.keys.stop)
    assert reach is not None
    low = min(max(offset + rows.queries.start - reach + 1, begin), end)
    high = min(max(offset + rows.queries.stop - 1 + reach, low), end)
    heads = slice(0, 1) if len(bias.values) == 1 else rows.heads
    near = dvalues.new_zeros(rows.heads.stop - rows.heads.start)
    for part in narrowed(_of_keys(rows, low, high), len(run.content[0])):
        along = _along(part, run)
        of = heads if len(bias.values) == 1 else part.heads
        first = bias.highest - part.first
        dvalues[of, first : first + along.shape[-1]] += along.sum_to_size(
            of.stop - of.start, along.shape[-1]
        )
        begins = part.heads.start - rows.heads.start
        near[begins : begins + len(along)] += along.sum(-1)
    before = after = torch.zeros_like(near)
    every = 0.0 if sums is None else sums[:, rows.heads, rows.queries].sum((0, 2))
    if low - begin > end - high:
        after = _of_far(_of_keys(rows, high, end), run)
        before = every - near - after
    elif end > high:
        before = _of_far(_of_keys(rows, begin, low), run)
        after = every - near - before
    last = dvalues.shape[1] - 1
    for distance, far in ((reach, before), (-reach, after)):
        # Where no key is as near as that, the nearest is far too and has the same number.
        column = min(max(bias.highest - distance, 0), last)
        dvalues[heads, column] += far.sum_to_size(heads.stop - heads.start)


def _of_keys(rows: Block, begin: int, end: int) -> Block:
    return replace(rows, keys=slice(begin, end), first=rows.first - (begin - rows.keys.start))


def _along(block: Block, run: Backward) -> Float[Tensor, "heads distances"]:
    """The sum of each diagonal of dS, from the largest distance down."""
    bias, merged, where = run.bias, run.merged, (slice(None), block.heads, block.queries)
    q, k, v = (t.to(bias.values.dtype) for t in content_of(block, *run.content))
    group = q.shape[1] // k.shape[1]

    def by_key_head(t: Tensor) -> Tensor:
        return t.unflatten(1, (-1, group))

    grad = by_key_head(merged.grad[where].flip(-2))
    lse, delta = (by_key_head(t[where].flip(-1)).unsqueeze(-1) for t in (merged.lse, merged.delta))
    mask = bias_of(block, bias).expand(1, q.shape[1], -1, -1)
    scores = torch.matmul(by_key_head(q) * run.scale, k.unsqueeze(2).mT).add_(by_key_head(mask))
    weights = scores.sub_(lse).exp_()
    to_weights = torch.matmul(grad, v.unsqueeze(2).mT).sub_(delta)
    room = shearing(to_weights)
    torch.mul(to_weights, weights, out=room[..., : k.shape[-2]])
    return anti_diagonals(room if len(room) == 1 else room.sum(0, keepdim=True))


def _of_far(block: Block, run: Backward) -> Float[Tensor, "heads"]:
    """The sum of dS over all of these keys, without dS."""
    bias, merged = run.bias, run.merged
    if block.keys.start == block.keys.stop:
        return merged.lse.new_zeros(block.heads.stop - block.heads.start)
    where = slice(None), block.heads, block.queries
    some = content_of(block, *run.content)
    out, lse = flash(*some, bias_of(block, bias), dead_rows(block, bias), scale=run.scale)
    grad, total, delta = merged.grad[where].flip(-2), merged.lse[where], merged.delta[where]
    share = (lse - total.flip(-1)).exp_()
    return (((grad * out).sum(-1) - delta.flip(-1)) * share).sum((0, 2))
