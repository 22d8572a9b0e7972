"""How a rotation walks through memory: strides checked and planned, once for each combination."""

from ctypes import Structure, c_int64
from functools import lru_cache
from typing import NamedTuple

import torch

from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.strides import FORMATS, Strided, contiguous, may_meet_itself


class Heads(Structure):
    """``struct heads`` of rotary.h: one tensor of heads."""

    _fields_ = [
        (name, c_int64)
        for name in (
            "count",
            *("x_batch", "x_head", "x_token"),
            *("out_batch", "out_head", "out_token"),
        )
    ]


class RotaryPlan(Structure):
    """``struct rotary_plan`` of rotary.h: sizes and strides, in elements, and no addresses."""

    _fields_ = [
        *[
            (name, c_int64)
            for name in (
                *("format", "interleaved", "begin", "pairs", "width", "sign"),
                *("batch", "tokens", "table_batch", "table_head", "table_row"),
                *("looked_up", "positions_batch", "positions_token", "rows"),
                "parts",
            )
        ],
        ("part", Heads * 2),
    ]


class Rows(NamedTuple):
    """How cosines and sines lie in memory, as ``RotaryPlan`` has it; 0 repeats."""

    table_batch: int
    table_head: int
    table_row: int
    looked_up: bool = False
    positions_batch: int = 0
    positions_token: int = 0
    rows: int = 0


@lru_cache(maxsize=1024)
def table_plan(
    contents: tuple[Strided, ...],
    outs: tuple[Strided, ...] | None,
    table: Strided,
    positions: Strided | None,
    layout: RotaryLayout,
) -> RotaryPlan | None:
    """The plan for a table ``[*rows, seq, 2, pairs]``; ``None`` for what no kernel takes.

    Args:
        contents: One or two tensors of heads.
        outs: As many, if they are not new and contiguous.
        table: With ``positions``, ``[rows, 2, pairs]``.
        positions: Which row of the table each token takes.
        layout: How heads lie and which channels are rotated.
    """
    (shape, steps, dtype), content = table, contents[0][0]
    if len(shape) < 3 or shape[-2] != 2 or len(content) not in (3, 4):
        return None
    if positions is None:
        rows = _a_row_each(table, content, layout)
    else:
        rows = _looked_up(table, positions, content, layout)
    if rows is None:
        return None
    return _planned(contents, outs, rows, shape[-1], steps[-1], dtype, layout)


@lru_cache(maxsize=1024)
def broadcast_plan(
    content: Strided, out: Strided | None, cos: Strided, layout: RotaryLayout
) -> RotaryPlan | None:
    """The plan for cosines whose axes broadcast against those of ``content``."""
    (shape, steps, dtype), outer = cos, content[0][:-1]
    missing = len(outer) - (len(shape) - 1)
    if missing < 0 or len(outer) not in (2, 3):
        return None
    if any(size not in (1, full) for size, full in zip(shape[:-1], outer[missing:], strict=True)):
        return None
    over = [0 if size == 1 else step for size, step in zip(shape[:-1], steps[:-1], strict=True)]
    batch, head, row = [0] * (3 - len(over)) + over
    outs = None if out is None else (out,)
    return _planned((content,), outs, Rows(batch, head, row), shape[-1], steps[-1], dtype, layout)


def _sizes(content: tuple[int, ...], layout: RotaryLayout) -> tuple[int, int, int]:
    """Batch, heads and tokens."""
    heads, tokens = content[-3:-1] if layout.heads_first else content[-2:-4:-1]
    return content[0] if len(content) == 4 else 1, heads, tokens


def _a_row_each(table: Strided, content: tuple[int, ...], layout: RotaryLayout) -> Rows | None:
    """One row a token, of each row of the batch or of all."""
    shape, steps, _ = table
    batch, _, tokens = _sizes(content, layout)
    if len(shape) > len(content) or shape[-3] != tokens:
        return None
    if len(shape) == 3:
        return Rows(0, 0, steps[0])
    if shape[0] not in (1, batch):
        return None
    return Rows(steps[0] if shape[0] > 1 else 0, 0, steps[1])


def _looked_up(
    table: Strided, positions: Strided, content: tuple[int, ...], layout: RotaryLayout
) -> Rows | None:
    """The same from rows 0, 1, 2, … of the table."""
    (shape, steps, _), (where, over, dtype) = table, positions
    batch, _, tokens = _sizes(content, layout)
    if len(shape) != 3 or dtype is not torch.int64 or not 1 <= len(where) <= len(content) - 2:
        return None
    if where[-1] != tokens or (len(where) == 2 and where[0] not in (1, batch)):
        return None
    over_batch = over[0] if len(where) == 2 and where[0] > 1 else 0
    return Rows(0, 0, steps[0], True, over_batch, over[-1], shape[0])


def _planned(
    contents: tuple[Strided, ...],
    outs: tuple[Strided, ...] | None,
    rows: Rows,
    pairs: int,
    pair_step: int,
    table_dtype: torch.dtype,
    layout: RotaryLayout,
) -> RotaryPlan | None:
    shape, _, dtype = contents[0]
    width = shape[-1]
    index, wanted = FORMATS.get(dtype, (0, None))
    if table_dtype is not wanted or not 2 <= 2 * pairs <= width:
        return None
    if pair_step != 1 and pairs > 1:
        return None
    batch, _, tokens = _sizes(shape, layout)
    parts = []
    for content, out in zip(contents, outs or [None] * len(contents), strict=True):
        if content[2] is not dtype or content[0][-1] != width or len(content[0]) != len(shape):
            return None
        batch_here, _, tokens_here = _sizes(content[0], layout)
        if (batch_here, tokens_here) != (batch, tokens):
            return None
        part = _part(content, out, layout)
        if part is None:
            return None
        parts.append(part)
    return RotaryPlan(
        format=index,
        interleaved=layout.interleaved,
        begin=width - 2 * pairs if layout.suffix else 0,
        pairs=pairs,
        width=width,
        sign=-1 if layout.conjugate else 1,
        batch=batch,
        tokens=tokens,
        **rows._asdict(),
        parts=len(parts),
        part=tuple(parts),
    )


def _part(content: Strided, out: Strided | None, layout: RotaryLayout) -> Heads | None:
    shape, _, dtype = content
    into = (shape, contiguous(shape), dtype) if out is None else out
    if into[0] != shape or into[2] is not dtype or may_meet_itself(*into[:2]):
        return None
    x_steps, out_steps = _steps(content, layout), _steps(into, layout)
    if x_steps is None or out_steps is None:
        return None
    return Heads(_sizes(shape, layout)[1], *x_steps, *out_steps)


def _steps(x: Strided, layout: RotaryLayout) -> tuple[int, int, int] | None:
    """Strides of batch, heads and tokens, if channels lie side by side."""
    shape, steps, _ = x
    if steps[-1] != 1 and shape[-1] > 1:
        return None
    heads, tokens = steps[-3:-1] if layout.heads_first else steps[-2:-4:-1]
    return steps[0] if len(shape) == 4 else 0, heads, tokens
