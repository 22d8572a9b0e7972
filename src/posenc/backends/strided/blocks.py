"""Attention with a bias of distance in blocks of queries, without the matrix of that bias."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.masks import nothing_of
from posenc.backends.sdpa import grouped, masked_attention
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.guards import may_look

ROWS = 256
"""Queries of a block; few, so that little work is done on keys that order hides from some."""
MANY_ROWS = 1024
"""Queries of a block where no key is hidden, or only few of many."""
FAR = 4096
"""Keys that a block sees, from which on most are seen by all of its queries."""


@dataclass(frozen=True)
class Block:
    """A block of queries and the keys that one of them may see."""

    heads: slice  # its query heads
    kv_heads: slice  # its key heads
    queries: slice  # first query and one past the last
    keys: slice  # first key and one past the last; equal where there is none
    first: int  # distance from the last query to the first key


def attend_in_blocks(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    bias: Toeplitz,
    offset: int,
    *,
    scale: float,
    dropout_p: float = 0.0,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """softmax(q kᵀ · scale + bias) v, block by block.

    Keys that are hidden from a whole block cost nothing. No gradient flows to ``bias``.
    """
    # Blocks depend on values, which are not known in a graph.
    if not (may_look(q) and may_look(k) and may_look(v)):
        return _attend(q, k, v, bias, offset + q.shape[-2] - 1, scale, dropout_p)
    learns = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
    parts: dict[int, list[Tensor]] = {}
    # The layout of torch's attention: the heads of a token side by side.
    out = None if learns else q.new_empty(
        len(q), q.shape[2], q.shape[1], v.shape[-1]
    ).transpose(1, 2)  # fmt: skip
    for block in blocks(q.shape, k.shape, bias, offset):
        of_heads, keys = _of_heads(bias, block.heads), (block.kv_heads, block.keys)
        some = q[:, block.heads, block.queries], k[:, *keys], v[:, *keys]
        part = _attend(*some, of_heads, block.first, scale, dropout_p)
        if out is not None:
            out[:, block.heads, block.queries] = part
        else:
            parts.setdefault(block.heads.start, []).append(part)
    if out is not None:
        return out
    rows = [_joined(some, dim=-2) for some in parts.values()]
    return _joined(rows, dim=1)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, bias: Toeplitz, first: int, scale: float, dropout_p: float
) -> Tensor:
    """All of these at once; ``first`` is the distance from the last query to the first key."""
    if may_look(q) and not k.shape[-2]:
        return q.new_zeros(*q.shape[:-1], v.shape[-1]) + nothing_of(q, k, v)
    mask = bias.reversed_rows(q.shape[-2], k.shape[-2], first=first)
    out = masked_attention(q.flip(-2), k, v, mask, dropout_p, scale=scale, enable_gqa=grouped(q, k))
    return out.flip(-2)


def _of_heads(bias: Toeplitz, heads: slice) -> Toeplitz:
    return bias if len(bias.values) == 1 else Toeplitz(bias.values[heads], bias.highest)


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)


def blocks(
    q_shape: torch.Size, k_shape: torch.Size, bias: Toeplitz, offset: int
) -> Iterator[Block]:
    """The blocks of queries of each group of heads, with the keys that they can see."""
    (heads, q_len), (kv_heads, k_len) = q_shape[1:3], k_shape[1:3]
    group = heads // kv_heads
    for some, low, high in reaches(bias, kv_heads, group):
        of = slice(some.start * group, some.stop * group), some
        all_seen = low <= offset - k_len + 1 and high >= offset + q_len - 1
        rows = MANY_ROWS if all_seen or min(high - low, k_len) > FAR else ROWS
        yield from in_rows(of, slice(0, q_len), slice(0, k_len), (low, high), offset, rows)


def in_rows(
    heads: tuple[slice, slice],
    queries: slice,
    keys: slice,
    reach: tuple[int, int],
    offset: int,
    rows: int,
) -> Iterator[Block]:
    """Some queries of some heads, a few at a time, and the keys that they see."""
    low, high = reach
    for start in range(queries.start, queries.stop, rows):
        stop = min(start + rows, queries.stop)
        first = max(keys.start, offset + start - high)
        past = max(first, min(keys.stop, offset + stop - low))
        yield Block(*heads, slice(start, stop), slice(first, past), offset + stop - 1 - first)


def content_of(block: Block, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of the block in reverse order, and its keys and values."""
    rows, columns = (block.heads, block.queries), (block.kv_heads, block.keys)
    return q[:, *rows].flip(-2), k[:, *columns], v[:, *columns]


def bias_of(block: Block, bias: Toeplitz) -> Tensor:
    """The bias of the block as a matrix, its queries in reverse order."""
    rows, columns = (s.stop - s.start for s in (block.queries, block.keys))
    return _of_heads(bias, block.heads).reversed_rows(rows, columns, first=block.first)


def dead_rows(block: Block, bias: Toeplitz) -> Tensor:
    """[heads, rows] or [1, rows]: queries, in reverse order, that see none of the block's keys."""
    some = bias.values if len(bias.values) == 1 else bias.values[block.heads]
    rows, columns = (s.stop - s.start for s in (block.queries, block.keys))
    start = bias.highest - block.first
    seen = (some[:, start : start + rows + columns - 1] != -torch.inf).long().cumsum(1)
    before = torch.nn.functional.pad(seen, (1, 0))
    return before[:, columns:] == before[:, :rows]


def reaches(bias: Toeplitz, kv_heads: int, group: int) -> Iterator[tuple[slice, int, int]]:
    """Neighboring key heads of a similar reach, with the least and largest distance they see."""
    seen = bias.values.isfinite()
    if len(seen) == 1:
        seen = seen.expand(kv_heads, -1)
    else:
        seen = seen.unflatten(0, (kv_heads, group)).any(1)
    index = torch.arange(seen.shape[1], device=seen.device)
    # Column m is distance highest − m; a head that sees nothing gets an empty range.
    highs = bias.highest - torch.where(seen, index, seen.shape[1]).amin(1)
    lows = bias.highest - torch.where(seen, index, -1).amax(1)
    ends = torch.stack([lows, highs], dim=1).tolist()
    begin = 0
    for head in range(1, kv_heads + 1):
        if head == kv_heads or _reach(ends[head]) != _reach(ends[begin]):
            yield (
                slice(begin, head),
                min(low for low, _ in ends[begin:head]),
                max(high for _, high in ends[begin:head]),
            )
            begin = head


def _reach(ends: list[int]) -> int:
    """Distances seen, to a power of two: heads that differ by less share their blocks."""
    return max(ends[1] - ends[0] + 1, ROWS).bit_length()
