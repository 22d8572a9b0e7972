"""The gradients of a run of queries and keys, block by block, each added where it belongs."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor
from torch.nn.functional import pad

from posenc.backends.strided.blocks import Block, bias_of, blocks, content_of
from posenc.backends.strided.far_keys import add_to_bias, may_share
from posenc.backends.strided.flash import flash_gradients, serves
from posenc.backends.strided.results import Merged
from posenc.backends.strided.score_gradients import add_gradients, narrowed
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.encodings.base import working_dtype


def add_all_gradients(
    grads: list[Tensor],
    content: tuple[Tensor, Tensor, Tensor],
    bias: Toeplitz,
    merged: Merged,
    offset: int,
    scale: float,
    softcap: float | None = None,
) -> None:
    """Add the gradients of these queries, these keys and the bias, to which others may add theirs.

    Args:
        grads: Of queries, keys, values and the values of ``bias``.
        content: Queries, keys and values.
        bias: The bias of every distance.
        merged: The result for all keys, also those that lie elsewhere.
        offset: Position of the first query less that of the first key.
        scale: What products are multiplied with.
        softcap: c in c · tanh(products / c), before the bias is added.
    """
    q, k, v = content
    # Sums of rows would be rounded to 16 bits, and be divided by a scale of 0.
    exact = working_dtype(q.dtype) == q.dtype and (merged.alone or scale != 0)
    learns = bias.values.requires_grad
    if learns and exact and softcap is None and may_share(q, k, v, bias):
        frozen = replace(bias, values=bias.values.detach())
        add = _sharing(grads, content, frozen, merged, offset, scale)
        for block in blocks(q.shape, k.shape, bias, offset):
            if block.keys.start != block.keys.stop:
                add(block)
        return
    for block in blocks(q.shape, k.shape, bias, offset):
        if block.keys.start == block.keys.stop:
            continue
        if learns or not serves(q, v, softcap):
            for rows in narrowed(block, len(q)):
                add_gradients(rows, grads, content, bias, merged, scale, softcap)
        else:
            _add_fused(block, grads, _gradients(block, content, bias, merged, scale))


def _sharing(
    grads: list[Tensor],
    content: tuple[Tensor, Tensor, Tensor],
    bias: Toeplitz,
    merged: Merged,
    offset: int,
    scale: float,
) -> Callable[[Block], None]:
    """What adds the gradients of a block where far keys share a number that is learned.

    Where keys lie elsewhere too, rows of the gradient of the scores do not sum to zero. One channel
    more, of ones in the keys and of zeros in all else, then gives these sums as the gradient of one
    channel more in the queries.
    """
    if merged.alone:

        def add_alone(block: Block) -> None:
            _add_fused(block, grads, _gradients(block, content, bias, merged, scale))
            add_to_bias(block, grads[3], content, bias, merged, offset, scale)

        return add_alone
    q, k, v = content
    wider = pad(q, (0, 1)), pad(k, (0, 1), value=1.0), pad(v, (0, 1))
    of_wider = merged._replace(out=pad(merged.out, (0, 1)), grad=pad(merged.grad, (0, 1)))
    sums = merged.lse.new_zeros(merged.lse.shape)

    def add(block: Block) -> None:
        made = _gradients(block, wider, bias, of_wider, scale)
        sums[:, block.heads, block.queries] = made[0][..., -1] / scale
        _add_fused(block, grads, [t[..., :-1] for t in made])
        add_to_bias(block, grads[3], content, bias, merged, offset, scale, sums)

    return add


def _gradients(
    block: Block,
    content: tuple[Tensor, Tensor, Tensor],
    bias: Toeplitz,
    merged: Merged,
    scale: float,
) -> list[Tensor]:
    """Those of queries, keys and values, by torch's fused operation."""
    where = slice(None), block.heads, block.queries
    grad, out = merged.grad[where].flip(-2), merged.out[where].flip(-2)
    some, mask = content_of(block, *content), bias_of(block, bias)
    dq, *others = flash_gradients(grad, *some, out, merged.lse[where].flip(-1), mask, scale=scale)
    return [dq.flip(-2), *others]


def _add_fused(block: Block, grads: list[Tensor], made: list[Tensor]) -> None:
    grads[0][:, block.heads, block.queries] += made[0]
    for total, new in zip(grads[1:3], made[1:], strict=True):
        total[:, block.kv_heads, block.keys] += new
