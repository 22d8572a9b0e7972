"""Many queries at once for the keys that all of them see, few at a time for the rest.

Torch's operation is fastest with many queries, but also computes scores of hidden keys. Of 1024
queries in causal order, all see the keys before the first query, and each sees some of the 1024
keys from there on. So the former keys meet all these queries in one call, the latter meet them in
blocks, and the log-sum-exp joins the results. Where the former keys all have one number of a bias,
as T5's far keys do, it is added to their log-sum-exp, and no mask is needed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.blocks import (
    FAR,
    MANY_ROWS,
    ROWS,
    Block,
    attend_in_blocks,
    bias_of,
    content_of,
    dead_rows,
    in_rows,
    reaches,
)
from posenc.backends.strided.flash import flash, serves
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.encodings.base import working_dtype
from posenc.guards import may_look

FEWEST_ROWS = 768
"""Queries of one call from which on torch's operation uses its largest tiles."""
FEWEST_KEYS = 1536
"""Keys that all queries see, from which on a call of their own is faster."""


class Wide(NamedTuple):
    """Many queries and keys that all of them see."""

    block: Block  # these
    number: Float[Tensor, "heads 1"] | None  # the bias, where all keys share it


def attend(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    bias: Toeplitz,
    offset: int,
    *,
    scale: float,
    dropout_p: float = 0.0,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """``attend_in_blocks``, in wide blocks where these are exact and autograd records nothing."""
    records = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
    known = may_look(q) and may_look(k) and may_look(v)
    if records or dropout_p or not known or not may_be_wide(q, k, v):
        return attend_in_blocks(q, k, v, bias, offset, scale=scale, dropout_p=dropout_p)
    # The layout of torch's attention: the heads of a token side by side.
    out = q.new_empty(len(q), q.shape[2], q.shape[1], v.shape[-1]).transpose(1, 2)
    attend_into(out, q.new_empty(q.shape[:-1]), q, k, v, bias, offset, scale=scale)
    return out


def may_be_wide(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether there are enough tokens, and results lose nothing before they are joined."""
    if not serves(q, v) or working_dtype(q.dtype) != q.dtype:
        return False
    if torch.is_autocast_enabled("cpu"):
        return False
    return len(q) > 0 and q.shape[2] >= FEWEST_ROWS and k.shape[2] >= FEWEST_KEYS


def attend_into(
    out: Float[Tensor, "batch heads q_len value_dim"],
    lse: Float[Tensor, "batch heads q_len"],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Toeplitz,
    offset: int,
    *,
    scale: float,
) -> None:
    """Write attention into ``out`` and its log-sum-exp into ``lse``, where ``may_be_wide``."""
    made = _Made(out, lse, (q, k, v), bias, scale)
    for wide, narrow in wide_blocks(q.shape, k.shape, bias, offset):
        if wide is not None:
            made.join(wide, narrow)
            continue
        for block in narrow:
            if block.keys.start == block.keys.stop:
                out[_rows(block)], lse[_rows(block)] = 0.0, -torch.inf
            else:
                made.put(block, dead_rows(block, bias))


class _Made(NamedTuple):
    """Results, written into ``out`` and ``lse``, and what they are computed from."""

    out: Tensor
    lse: Tensor
    content: tuple[Tensor, Tensor, Tensor]
    bias: Toeplitz
    scale: float

    def put(self, block: Block, dead: Tensor) -> None:
        """The result of a block."""
        self.out[_rows(block)], self.lse[_rows(block)] = self._of(block, dead)

    def join(self, wide: Wide, narrow: tuple[Block, ...]) -> None:
        """The result of a wide block and narrow ones; each query sees a key of both."""
        none_dead = self.out.new_zeros((), dtype=torch.bool)
        for block in narrow:
            self.put(block, none_dead)
        if wide.number is None:
            new, new_lse = self._of(wide.block, none_dead)
        else:
            q, k, v = self.content
            keys = slice(None), wide.block.kv_heads, wide.block.keys
            made = flash(q[_rows(wide.block)], k[keys], v[keys], None, none_dead, scale=self.scale)
            new, new_lse = made[0], made[1] + wide.number
        out, lse = (t[_rows(wide.block)] for t in (self.out, self.lse))
        if narrow:
            out.lerp_(new, torch.sigmoid(new_lse - lse).unsqueeze(-1))
            torch.logaddexp(lse, new_lse, out=lse)
        else:
            out.copy_(new)
            lse.copy_(new_lse)

    def _of(self, block: Block, dead: Tensor) -> tuple[Tensor, Tensor]:
        content, bias = content_of(block, *self.content), bias_of(block, self.bias)
        out, lse = flash(*content, bias, dead, scale=self.scale)
        return out.flip(-2), lse.flip(-1)


def _rows(block: Block) -> tuple[slice, slice, slice]:
    return slice(None), block.heads, block.queries


def wide_blocks(
    q_shape: torch.Size, k_shape: torch.Size, bias: Toeplitz, offset: int
) -> Iterator[tuple[Wide | None, tuple[Block, ...]]]:
    """Each run of queries of each group of heads: a wide block if it has one, and narrow ones."""
    (heads, q_len), (kv_heads, k_len) = q_shape[1:3], k_shape[1:3]
    group = heads // kv_heads
    for some, low, high in reaches(bias, kv_heads, group):
        of = slice(some.start * group, some.stop * group), some
        even = _even_from(bias, of[0], low, high) if high >= FEWEST_KEYS else None
        for start in range(0, q_len, MANY_ROWS):
            queries = slice(start, min(start + MANY_ROWS, q_len))
            first, past, number = offset + queries.stop - 1, 0, None
            if even is not None and first <= high and queries.stop - start >= FEWEST_ROWS:
                past, number = _seen_by_all(offset + start, low, k_len, *even)
            wide = None
            if past >= FEWEST_KEYS:
                wide = Wide(Block(*of, queries, slice(0, past), first), number)
            rest = slice(past if wide else 0, k_len)
            yield wide, tuple(_narrow(of, queries, rest, (low, high), offset))


def _even_from(bias: Toeplitz, heads: slice, low: int, high: int) -> tuple[int, Tensor] | None:
    """From which distance on the bias is one number a head, and these numbers."""
    values = bias.values if len(bias.values) == 1 else bias.values[heads]
    values = values[:, bias.highest - high : bias.highest - low + 1]
    if not values.numel() or not bool(values.isfinite().all()):
        return None
    changes = (values != values[:, :1]).any(0)
    start = high - int(changes.int().argmax()) + 1 if bool(changes.any()) else low
    return start, values[:, :1]


def _seen_by_all(
    query: int, low: int, k_len: int, even_from: int, number: Tensor
) -> tuple[int, Tensor | None]:
    """One past the keys that all queries from this one on see, and their number if it is one."""
    past = query - low
    # But for the last key before the first query's own, so that it too sees one of the rest.
    past = k_len if past + 1 >= k_len else past
    alike = min(past, query - even_from + 1)
    # A mask costs a sixteenth of a call; narrow blocks work a quarter longer on a key than wide.
    return (alike, number) if past - alike <= alike // 8 else (past, None)


def _narrow(
    heads: tuple[slice, slice], queries: slice, keys: slice, reach: tuple[int, int], offset: int
) -> Iterator[Block]:
    """Blocks of these queries and what they see of these keys."""
    if keys.start == keys.stop:
        return
    (whole,) = in_rows(heads, queries, keys, reach, offset, MANY_ROWS)
    low, high = reach
    all_seen = low <= offset + queries.start - keys.stop + 1 and whole.first <= high
    many = all_seen or whole.keys.stop - whole.keys.start > FAR
    yield from in_rows(heads, queries, keys, reach, offset, MANY_ROWS if many else ROWS)
