"""The gradients of a run of queries and keys, block by block, each added where it belongs."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import Tensor
from torch.nn.functional import pad

from posenc.backends.strided.blocks import Block, bias_of, blocks, content_of
from posenc.backends.strided.far_keys import add_to_bias, may_share
from posenc.backends.strided.flash import flash_gradients, serves
from posenc.backends.strided.results import Backward
from posenc.backends.strided.score_gradients import add_gradients, narrowed
from posenc.encodings.base import working_dtype


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
