"""The gradients of a run of queries and keys, block by block, each added where it belongs."""

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import pad

from posenc.backends.strided.blocks import Block, bias_of, blocks, content_of
from posenc.backends.strided.far_keys import add_to_bias, may_share
from posenc.backends.strided.flash import flash_gradients, serves
from posenc.backends.strided.learned_bias import add_gradients, narrowed
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.encodings.base import working_dtype

if TYPE_CHECKING:
    from posenc.backends.strided.partial import Merged


def add_all_gradients(
    grads: list[Tensor],
    content: tuple[Tensor, Tensor, Tensor],
    bias: Toeplitz,
    merged: "Merged",
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
    learns, q = bias.values.requires_grad, content[0]
    # Sums of rows would be rounded to 16 bits, and be divided by a scale of 0.
    exact = working_dtype(q.dtype) == q.dtype and scale != 0
    if learns and exact and softcap is None and may_share(*content, bias):
        sharing = _Sharing(content, bias, merged, offset, scale)
        for block in blocks(q.shape, content[1].shape, bias, offset):
            sharing.add(block, grads)
        return
    for block in blocks(q.shape, content[1].shape, bias, offset):
        _add(block, grads, content, bias, merged, scale, softcap)


def _add(
    block: Block,
    grads: list[Tensor],
    content: tuple[Tensor, Tensor, Tensor],
    bias: Toeplitz,
    merged: "Merged",
    scale: float,
    softcap: float | None,
) -> None:
    """Add the gradients of one block where they belong."""
    q, k, v = content
    if block.keys.start == block.keys.stop:
        return
    if bias.values.requires_grad or not serves(q, v, softcap):
        for rows in narrowed(block, len(q)):
            add_gradients(
                rows, grads, q, k, v, bias, merged.out, merged.grad, scale, lse=merged.lse,
                softcap=softcap,
            )  # fmt: skip
        return
    made = _gradients(block, content, merged.out, merged.grad, merged.lse, bias, scale)
    _add_fused(block, grads, made)


class _Sharing:
    """The gradients of blocks where far keys share a number that is learned.

    One channel more, of ones in the keys and of zeros in all else, gives the sum of each row of the
    gradient of the scores as that of one channel more in the queries.
    """

    def __init__(
        self,
        content: tuple[Tensor, Tensor, Tensor],
        bias: Toeplitz,
        merged: "Merged",
        offset: int,
        scale: float,
    ):
        self.content, self.merged, self.offset, self.scale = content, merged, offset, scale
        self.bias = replace(bias, values=bias.values.detach())
        q, k, v = content
        self.wider = pad(q, (0, 1)), pad(k, (0, 1), value=1.0), pad(v, (0, 1))
        self.out, self.grad = pad(merged.out, (0, 1)), pad(merged.grad, (0, 1))
        self.sums = merged.lse.new_zeros(merged.lse.shape)

    def add(self, block: Block, grads: list[Tensor]) -> None:
        """Add those of one block where they belong."""
        if block.keys.start == block.keys.stop:
            return
        where = slice(None), block.heads, block.queries
        made = _gradients(block, self.wider, self.out, self.grad, self.merged.lse, self.bias,
                          self.scale)  # fmt: skip
        self.sums[where] = made[0][..., -1] / self.scale
        _add_fused(block, grads, [t[..., :-1] for t in made])
        add_to_bias(block, grads[3], self.content, self.bias, self.merged, self.offset, self.scale,
                    self.sums)  # fmt: skip


def _gradients(
    block: Block,
    content: tuple[Tensor, Tensor, Tensor],
    out: Tensor,
    grad: Tensor,
    lse: Tensor,
    bias: Toeplitz,
    scale: float,
) -> list[Tensor]:
    """Those of queries, keys and values, by torch's fused operation."""
    where = slice(None), block.heads, block.queries
    grad, out = grad[where].flip(-2), out[where].flip(-2)
    some, mask = content_of(block, *content), bias_of(block, bias)
    dq, *others = flash_gradients(grad, *some, out, lse[where].flip(-1), mask, scale=scale)
    return [dq.flip(-2), *others]


def _add_fused(block: Block, grads: list[Tensor], made: list[Tensor]) -> None:
    grads[0][:, block.heads, block.queries] += made[0]
    for total, new in zip(grads[1:3], made[1:], strict=True):
        total[:, block.kv_heads, block.keys] += new
