"""Plans for the rotation kernel: layouts checked and packed, once for each combination of them."""

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import torch

# Places in FORMATS of rotary.c, and the dtype of the table that each is turned with.
FORMATS = {
    torch.float32: (0, torch.float32),
    torch.bfloat16: (1, torch.float32),
    torch.float16: (2, torch.float32),
    torch.float64: (3, torch.float64),
}
PLAN = Struct("=29q")
"""``struct plan`` of rotary.c: everything but addresses."""

Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Shape, strides and dtype."""


class RotaryLayout(NamedTuple):
    """How heads are turned.

    Attributes:
        interleaved: Whether channels 2i and 2i + 1 are a pair, or i and i + pairs.
        suffix: Whether the last channels are rotated, or the first.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``, or
            ``[*batch, seq, heads, head_dim]``.
        conjugate: Whether to turn backwards.
    """

    interleaved: bool = False
    suffix: bool = False
    heads_first: bool = True
    conjugate: bool = False


class Rows(NamedTuple):
    """How cosines and sines lie in memory; strides count elements, and 0 repeats."""

    batch: int
    head: int
    row: int
    positions_batch: int = 0
    positions_token: int = 0
    table_rows: int = 0


@lru_cache(maxsize=1024)
def table_plan(
    contents: tuple[Layout, ...],
    outs: tuple[Layout, ...] | None,
    table: Layout,
    positions: Layout | None,
    layout: RotaryLayout,
) -> tuple[bytes, int] | None:
    """The plan for a table ``[*rows, seq, 2, pairs]``, and how many bytes after cos its sin is."""
    (shape, steps, dtype), content = table, contents[0][0]
    if len(shape) < 3 or shape[-2] != 2 or len(content) not in (3, 4):
        return None
    rows = _rows(table, content, layout) if positions is None else _looked_up(table, positions)
    if rows is None:
        return None
    if positions is not None and not _one_a_token(positions, content, layout):
        return None
    packed = _packed(contents, outs, rows, shape[-1], steps[-1], dtype, layout)
    return None if packed is None else (packed, steps[-2] * dtype.itemsize)


@lru_cache(maxsize=1024)
def broadcast_plan(
    content: Layout, out: Layout | None, cos: Layout, layout: RotaryLayout
) -> bytes | None:
    """The plan for cosines whose axes broadcast against those of ``content``."""
    (shape, steps, dtype), outer = cos, content[0][:-1]
    missing = len(outer) - (len(shape) - 1)
    if missing < 0 or len(outer) not in (2, 3):
        return None
    if any(size not in (1, full) for size, full in zip(shape[:-1], outer[missing:], strict=True)):
        return None
    over = [0 if size == 1 else step for size, step in zip(shape[:-1], steps[:-1], strict=True)]
    over = [0] * (3 - len(over)) + over
    outs = None if out is None else (out,)
    return _packed((content,), outs, Rows(*over), shape[-1], steps[-1], dtype, layout)


def _sizes(content: tuple[int, ...], layout: RotaryLayout) -> tuple[int, int, int]:
    """Batch, heads and tokens."""
    heads, tokens = content[-3:-1] if layout.heads_first else content[-2:-4:-1]
    return content[0] if len(content) == 4 else 1, heads, tokens


def _rows(table: Layout, content: tuple[int, ...], layout: RotaryLayout) -> Rows | None:
    shape, steps, _ = table
    batch, _, tokens = _sizes(content, layout)
    if len(shape) > len(content) or shape[-3] != tokens:
        return None
    if len(shape) == 3:
        return Rows(0, 0, steps[0])
    if shape[0] not in (1, batch):
        return None
    return Rows(steps[0] if shape[0] > 1 else 0, 0, steps[1])


def _looked_up(table: Layout, positions: Layout) -> Rows | None:
    (shape, steps, _), (where, over, dtype) = table, positions
    if len(shape) != 3 or dtype is not torch.int64 or len(where) not in (1, 2):
        return None
    over_batch = over[0] if len(where) == 2 and where[0] > 1 else 0
    return Rows(0, 0, steps[0], over_batch, over[-1], shape[0])


def _one_a_token(positions: Layout, content: tuple[int, ...], layout: RotaryLayout) -> bool:
    batch, _, tokens = _sizes(content, layout)
    where = positions[0]
    if where[-1] != tokens or len(where) > len(content) - 2:
        return False
    return len(where) == 1 or where[0] in (1, batch)


def _packed(
    contents: tuple[Layout, ...],
    outs: tuple[Layout, ...] | None,
    rows: Rows,
    pairs: int,
    pair_step: int,
    table_dtype: torch.dtype,
    layout: RotaryLayout,
) -> bytes | None:
    shape, _, dtype = contents[0]
    width = shape[-1]
    index, wanted = FORMATS.get(dtype, (0, None))
    if table_dtype is not wanted or 2 * pairs > width or (pair_step != 1 and pairs > 1):
        return None
    batch, _, tokens = _sizes(shape, layout)
    parts: list[int] = []
    for content, out in zip(contents, outs or [None] * len(contents), strict=True):
        if content[2] is not dtype or content[0][-1] != width or len(content[0]) != len(shape):
            return None
        rows_here, heads, tokens_here = _sizes(content[0], layout)
        if (rows_here, tokens_here) != (batch, tokens):
            return None
        out = (content[0], _contiguous(content[0]), dtype) if out is None else out
        strides = _strides(content, layout), _strides(out, layout)
        if out[0] != content[0] or out[2] is not dtype or None in strides:
            return None
        parts += [heads, *strides[0], *strides[1]]  # type: ignore[misc]
    begin = width - 2 * pairs if layout.suffix else 0
    head = [
        index,
        layout.interleaved,
        begin,
        pairs,
        width,
        -1 if layout.conjugate else 1,
    ]
    parts += [0] * (14 - len(parts))
    return PLAN.pack(*head, batch, tokens, *rows, len(contents), *parts)


def _strides(laid: Layout, layout: RotaryLayout) -> tuple[int, int, int] | None:
    """Those of batch, heads and tokens, if channels lie side by side."""
    shape, steps, _ = laid
    if steps[-1] != 1 and shape[-1] > 1:
        return None
    heads, tokens = steps[-3:-1] if layout.heads_first else steps[-2:-4:-1]
    return steps[0] if len(shape) == 4 else 0, heads, tokens


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(size, 1))
    return tuple(steps)
