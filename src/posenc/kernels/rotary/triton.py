"""Rotation of queries and keys on an accelerator."""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from posenc.kernels.rotary.layout import RotaryLayout

PAIRS_AT_ONCE = 2048
"""Of one program, over as many heads as that makes."""


@triton.jit
def _rotate(
    x, out, cos, sin, known, first, heads, x_head, out_head, cos_head,
    PAIRS: tl.constexpr, BEGIN: tl.constexpr, WIDTH: tl.constexpr, SIGN: tl.constexpr,
    INTERLEAVED: tl.constexpr, PER_HEAD: tl.constexpr, IN_PLACE: tl.constexpr,
    HEADS: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Some heads of one token: (a, b) → (a cos − b sin, b cos + a sin), rounded once."""
    head = (first + tl.arange(0, HEADS)).to(tl.int64)
    pair = tl.arange(0, BLOCK)
    here = (head < heads)[:, None] & (pair < PAIRS)[None, :]
    at = pair[None, :] + (head[:, None] * cos_head if PER_HEAD else head[:, None] * 0)
    c = tl.where(known, tl.load(cos + at, mask=here, other=0.0), float("nan"))
    s = SIGN * tl.load(sin + at, mask=here, other=0.0)
    x += head[:, None] * x_head
    out += head[:, None] * out_head
    if INTERLEAVED:
        both = tl.arange(0, 2 * BLOCK)
        there = (head < heads)[:, None] & (both < 2 * PAIRS)[None, :]
        content = tl.load(x + BEGIN + both[None, :], mask=there)
        a, b = tl.split(tl.reshape(content.to(c.dtype), (HEADS, BLOCK, 2)))
        made = tl.join(a * c - b * s, b * c + a * s)
        made = tl.reshape(made, (HEADS, 2 * BLOCK)).to(content.dtype)
        tl.store(out + BEGIN + both[None, :], made, mask=there)
    else:
        content = tl.load(x + BEGIN + pair[None, :], mask=here)
        a = content.to(c.dtype)
        b = tl.load(x + BEGIN + PAIRS + pair[None, :], mask=here).to(c.dtype)
        tl.store(out + BEGIN + pair[None, :], (a * c - b * s).to(content.dtype), mask=here)
        tl.store(out + BEGIN + PAIRS + pair[None, :], (b * c + a * s).to(content.dtype), mask=here)
    if REST > 0 and not IN_PLACE:  # channels that pass through
        channel = tl.arange(0, REST)
        there = (head < heads)[:, None] & (channel < WIDTH - 2 * PAIRS)[None, :]
        channel += tl.where(channel < BEGIN, 0, 2 * PAIRS)
        rest = tl.load(x + channel[None, :], mask=there)
        tl.store(out + channel[None, :], rest, mask=there)


@triton.jit
def rotary_kernel(
    q, q_out, k, k_out, cos, sin, positions,
    tokens, table_batch, table_head, table_row, positions_batch, positions_token, rows,
    q_heads, q_batch, q_head, q_token, q_out_batch, q_out_head, q_out_token,
    k_heads, k_batch, k_head, k_token, k_out_batch, k_out_head, k_out_token,
    LOOKED_UP: tl.constexpr, WITH_KEYS: tl.constexpr,
    PAIRS: tl.constexpr, BEGIN: tl.constexpr, WIDTH: tl.constexpr, SIGN: tl.constexpr,
    INTERLEAVED: tl.constexpr, PER_HEAD: tl.constexpr, IN_PLACE: tl.constexpr,
    HEADS: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """One token a program, all its heads, of queries and keys alike.

    A position that is no row of the table makes NaN: raising would have to wait for it.
    """
    program = tl.program_id(0).to(tl.int64)
    batch, token = program // tokens, program % tokens
    row, known = token, token >= 0
    if LOOKED_UP:
        row = tl.load(positions + batch * positions_batch + token * positions_token)
        known = (row >= 0) & (row < rows)
        row = tl.where(known, row, 0)
    at = batch * table_batch + row * table_row
    x, out = (
        q + batch * q_batch + token * q_token,
        q_out + batch * q_out_batch + token * q_out_token,
    )
    for first in range(0, q_heads, HEADS):
        _rotate(x, out, cos + at, sin + at, known, first, q_heads, q_head, q_out_head, table_head,
              PAIRS, BEGIN, WIDTH, SIGN, INTERLEAVED, PER_HEAD, IN_PLACE, HEADS, BLOCK,
              REST)  # fmt: skip
    if WITH_KEYS:
        x = k + batch * k_batch + token * k_token
        out = k_out + batch * k_out_batch + token * k_out_token
        for first in range(0, k_heads, HEADS):
            _rotate(x, out, cos + at, sin + at, known, first, k_heads, k_head, k_out_head,
                  table_head, PAIRS, BEGIN, WIDTH, SIGN, INTERLEAVED, PER_HEAD, IN_PLACE, HEADS,
                  BLOCK, REST)  # fmt: skip


def rotate_heads(
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
    outs: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, ...] | None:
    """Heads rotated by Triton, or ``None`` where it does not take them; see ``front.py``.

    Where a position is not a row of the table, its token becomes NaN.
    """
    q, k = (_batched(x, layout) for x in (contents[0], contents[-1]))
    batch, _, tokens, width = q.shape
    rows = table.shape[-3] if positions is None else positions.shape[-1]
    if rows != tokens or (k.shape[0], *k.shape[2:], k.dtype) != (batch, tokens, width, q.dtype):
        return None
    cos, sin = table.unbind(-2)
    if positions is None:
        cos, sin = (part.expand(batch, 1, tokens, -1) if part.ndim == 2 else part.unsqueeze(1)
                    for part in (cos, sin))  # fmt: skip
    else:
        cos, sin, positions = cos[None, None], sin[None, None], positions.expand(batch, tokens)
    made = outs or tuple(map(_room, contents))
    return _launched(contents, made, cos, sin, positions, layout)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout) -> Tensor | None:
    """``reference.rotate`` by Triton, or ``None``; heads count as first."""
    rows = (*_batched(x, layout).shape[:-1], cos.shape[-1])
    made = _launched((x,), (_room(x),), cos.expand(rows), sin.expand(rows), None, layout)
    return None if made is None else made[0]


def _room(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _batched(x: Tensor, layout: RotaryLayout) -> Tensor:
    """A view ``[batch, heads, tokens, width]``."""
    x = x.unsqueeze(0) if x.ndim == 3 else x
    return x if layout.heads_first else x.transpose(1, 2)


def _launched(
    contents: tuple[Tensor, ...],
    made: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
    layout: RotaryLayout,
) -> tuple[Tensor, ...] | None:
    """By cosines ``[batch, heads, rows, pairs]``, of which an axis of one serves all."""
    q, k, q_out, k_out = (
        _batched(x, layout) for x in (contents[0], contents[-1], made[0], made[-1])
    )
    batch, _, tokens, width = q.shape
    pairs = cos.shape[-1]
    wide = torch.float64 if q.dtype is torch.float64 else torch.float32
    if cos.dtype is not wide or sin.stride() != cos.stride() or not 2 <= 2 * pairs <= width:
        return None
    if any(x.stride(-1) != 1 for x in (q, k, q_out, k_out, cos)):
        return None
    most = max(q.shape[1], k.shape[1])
    if not q.numel() + k.numel():
        return made
    over = [0 if cos.shape[axis] == 1 else cos.stride(axis) for axis in range(3)]
    where = (0, 0) if positions is None else positions.stride()
    block = triton.next_power_of_2(pairs)
    grouped = min(triton.next_power_of_2(most), max(PAIRS_AT_ONCE // block, 1))
    with torch.cuda.device_of(q):
        rotary_kernel[(batch * tokens,)](
            q, q_out, k, k_out, cos, sin, positions,
            tokens, over[0], over[1], cos.stride(2), *where, cos.shape[2],
            q.shape[1], *q.stride()[:3], *q_out.stride()[:3],
            k.shape[1], *k.stride()[:3], *k_out.stride()[:3],
            LOOKED_UP=positions is not None, WITH_KEYS=len(contents) == 2,
            PAIRS=pairs, BEGIN=width - 2 * pairs if layout.suffix else 0, WIDTH=width,
            SIGN=-1 if layout.conjugate else 1,
            INTERLEAVED=layout.interleaved, PER_HEAD=over[1] != 0,
            IN_PLACE=all(out is x for out, x in zip(made, contents, strict=True)),
            HEADS=grouped, BLOCK=block, REST=triton.next_power_of_2(width - 2 * pairs),
            enable_fp_fusion=False,  # products are rounded before they are added, as torch's are
        )  # fmt: skip
    return made
