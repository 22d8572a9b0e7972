"""The gradient of a bias whose far keys share one learned number, as T5's last bucket does.

The gradient of the scores, dS = P ∘ (dO Vᵀ − δ), is formed for a band of near keys alone. The sum
of dS over the far keys of one side is the sum of the row less that of all other keys. Where there
are far keys on both sides, attention to those of the smaller side, with output o and log-sum-exp l,
gives their sum: Σ exp(l − L) (dO · o − δ).
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.blocks import ROWS, Block, bias_of, content_of, dead_rows
from posenc.backends.strided.flash import flash, serves
from posenc.backends.strided.results import Backward
from posenc.backends.strided.score_gradients import anti_diagonals, narrowed, shearing
from posenc.backends.strided.toeplitz import Toeplitz


def may_share(q: Tensor, k: Tensor, v: Tensor, bias: Toeplitz) -> bool:
    """Whether most keys are far from most queries, and torch's fused operation takes these."""
    if bias.shared_from is None or not serves(q, v):
        return False
    return q.shape[2] >= ROWS and 2 * (ROWS + 2 * bias.shared_from) <= k.shape[2]


def _short(block: Block) -> Iterator[Block]:
    """The block in few queries at a time: the fewer, the narrower is their band."""
    last = block.queries.stop
    if block.keys.start == block.keys.stop:
        return
    for start in range(block.queries.start, last, ROWS):
        stop = min(start + ROWS, last)
        queries = slice(start, stop)
        first = block.first - (last - stop)
        yield Block(block.heads, block.kv_heads, queries, block.keys, first)


def add_to_bias(
    block: Block,
    dvalues: Float[Tensor, "heads count"],
    run: Backward,
    sums: Float[Tensor, "batch heads q_len"] | None = None,
) -> None:
    """Add what a block of all keys gives to the gradient of the bias, where ``may_share``.

    ``sums`` are those of each row of dS; 0 if not given, as they are where no key is elsewhere.
    """
    for rows in _short(block):
        _add(rows, dvalues, run, sums)


def _add(rows: Block, dvalues: Tensor, run: Backward, sums: Tensor | None) -> None:
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
    first = rows.first - (begin - rows.keys.start)
    return Block(rows.heads, rows.kv_heads, rows.queries, slice(begin, end), first)


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
