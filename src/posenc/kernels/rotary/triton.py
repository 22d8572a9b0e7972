"""Rotation of queries and keys on an accelerator."""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from posenc.kernels.autograd import note_writes
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.strides import Heads, RotaryPlan, broadcast_plan, table_plan
from posenc.kernels.strides import fits, have_memory, strided, strided_or_none

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
    """``cpu.rotate_heads`` in Triton, or ``None`` where it does not take them.

    Where a position is not a row of the table, its token becomes NaN.

    Args:
        contents: One or two tensors of heads, on one device.
        table: ``[*batch, seq, 2, pairs]``, or ``[rows, 2, pairs]`` with ``positions``.
        positions: Which row of the table each token takes.
        layout: How heads lie and which channels are rotated.
        outs: Where to write, one tensor each; ``contents`` itself rotates in place.
    """
    if not have_memory(table, positions, *contents, *(outs or ())):
        return None
    if outs is not None and not _fit(outs, contents, table, positions):
        return None
    laid, into = tuple(map(strided, contents)), outs and tuple(map(strided, outs))
    plan = table_plan(laid, into, strided(table), strided_or_none(positions), layout)
    if plan is None:
        return None
    cos, sin = table.unbind(-2)
    return _launched(plan, contents, cos, sin, positions, outs)


def rotate(
    x: Tensor, cos: Tensor, sin: Tensor, layout: RotaryLayout, out: Tensor | None = None
) -> Tensor | None:
    """``cpu.rotate`` in Triton, or ``None`` where it does not take them."""
    if not have_memory(x, cos, sin, out) or not (out is None or fits(out, x, cos, sin)):
        return None
    rows = strided(cos)
    plan = broadcast_plan(strided(x), strided_or_none(out), rows, layout)
    if plan is None or rows != strided(sin):
        return None
    return _launched(plan, (x,), cos, sin, None, None if out is None else (out,))[0]


def _fit(
    outs: tuple[Tensor, ...],
    contents: tuple[Tensor, ...],
    table: Tensor,
    positions: Tensor | None,
) -> bool:
    """Whether nothing that is still to be read is written."""
    pairs = list(zip(outs, contents, strict=True))
    for i, (out, x) in enumerate(pairs):
        others = [y for j, pair in enumerate(pairs) if j != i for y in pair]
        if not fits(out, x, table, positions, *others):
            return False
    return True


def _launched(
    plan: RotaryPlan,
    contents: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None,
    outs: tuple[Tensor, ...] | None,
) -> tuple[Tensor, ...]:
    made = outs or tuple(
        torch.empty_like(x, memory_format=torch.contiguous_format) for x in contents
    )
    q, k = plan.part
    most = max(q.count, k.count)
    if not plan.batch * plan.tokens * plan.pairs * most:
        return made
    block = triton.next_power_of_2(plan.pairs)
    grouped = min(triton.next_power_of_2(most), max(PAIRS_AT_ONCE // block, 1))
    with torch.cuda.device_of(contents[0]):
        rotary_kernel[(plan.batch * plan.tokens,)](
            contents[0], made[0], contents[-1], made[-1], cos, sin, positions,
            plan.tokens, plan.table_batch, plan.table_head, plan.table_row,
            plan.positions_batch, plan.positions_token, plan.rows,
            *_of_heads(q), *_of_heads(k),
            LOOKED_UP=bool(plan.looked_up), WITH_KEYS=plan.parts == 2,
            PAIRS=plan.pairs, BEGIN=plan.begin, WIDTH=plan.width, SIGN=plan.sign,
            INTERLEAVED=bool(plan.interleaved), PER_HEAD=plan.table_head != 0,
            IN_PLACE=outs is not None and all(o is x for o, x in zip(outs, contents, strict=True)),
            HEADS=grouped, BLOCK=block, REST=triton.next_power_of_2(plan.width - 2 * plan.pairs),
            enable_fp_fusion=False,  # products are rounded before they are added, as torch's are
        )  # fmt: skip
    if outs is not None:
        note_writes(outs)
    return made


def _of_heads(part: Heads) -> tuple[int, ...]:
    """As the kernel takes them: ``q_heads, q_batch, …``."""
    return (part.count, part.x_batch, part.x_head, part.x_token,
            part.out_batch, part.out_head, part.out_token)  # fmt: skip
