"""Plans for the additive kernel: layouts checked, simplified and packed, once for each of them."""

from functools import lru_cache
from itertools import pairwise
from struct import Struct

import torch

# Places in FORMATS of addition.c, and the dtype of the table that each is added to.
FORMATS = {
    torch.float32: (0, torch.float32),
    torch.bfloat16: (1, torch.float32),
    torch.float16: (2, torch.float32),
    torch.float64: (3, torch.float64),
}
PLAN = Struct("=24q")
"""``struct addition`` of addition.c: everything but addresses."""

AXES = 3

Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Shape, strides and dtype."""

Axis = tuple[int, ...]
"""Size; strides of x, the table, the output, ids and positions."""


@lru_cache(maxsize=1024)
def addition_plan(
    x: Layout,
    table: Layout | None,
    out: Layout | None,
    ids: Layout | None = None,
    positions: Layout | None = None,
) -> tuple[bytes, tuple[int, ...]] | None:
    """The plan, and the shape of the result; ``None`` for what C does not take.

    Args:
        x: Content, or with ``ids`` the vectors ``[rows, dim]``.
        table: What broadcasts against content, or with ``positions`` the rows ``[rows, dim]``.
        out: If it is not a new and contiguous tensor.
        ids: int64, one a token.
        positions: int64, one a token, or broadcast against tokens.
    """
    index, wanted = FORMATS.get(x[2], (0, None))
    if wanted is None or (table is not None and table[2] is not wanted):
        return None
    shape = x[0] if ids is None else (*ids[0], x[0][-1])
    if not shape or (out is not None and (out[0] != shape or out[2] is not x[2])):
        return None
    contents = [_over(x, shape, ids), _over(table, shape, positions)]
    contents.append(_over(out, shape) if out is not None else _contiguous(shape))
    rows = [_over(where, shape[:-1]) for where in (ids, positions)]
    if None in contents or None in rows or not all(_int64(where) for where in (ids, positions)):
        return None
    tokens = [*contents, *[(*row, 1) for row in rows if row is not None]]
    axes = list(zip(shape, *tokens, strict=True))  # type: ignore[arg-type]
    if any(step != 1 for step in axes[-1][1:4]) and not _unread(table, axes[-1]):
        return None
    looked_up = ids is not None or positions is not None
    outer, width = _simplified(axes, looked_up)
    if len(outer) > AXES or _meets_itself([*outer, (width, 1, 1, 1)]):
        return None
    outer = [(1, *[0] * 5)] * (AXES - len(outer)) + outer
    columns = [value for column in zip(*outer, strict=True) for value in column]
    ends = [0, 0, 0, 0]
    if ids is not None:
        ends[:2] = x[0][0], x[1][0]
    if positions is not None and table is not None:
        ends[2:] = table[0][0], table[1][0]
    return PLAN.pack(index, *columns[:AXES], width, *columns[AXES:], *ends), shape


def _over(
    layout: Layout | None, shape: tuple[int, ...], looked_up: Layout | None = None
) -> tuple[int, ...] | None:
    """Strides over all axes of ``shape``, 0 along those that are broadcast."""
    if layout is None:
        return (0,) * len(shape)
    sizes, steps, _ = layout
    if looked_up is not None:
        if len(sizes) != 2:
            return None
        sizes, steps = sizes[1:], steps[1:]
    missing = len(shape) - len(sizes)
    if missing < 0 or any(
        size not in (1, full) for size, full in zip(sizes, shape[missing:], strict=True)
    ):
        return None
    # An axis of one element has any stride that suits.
    over = [0 if size == 1 else step for size, step in zip(sizes, steps, strict=True)]
    if sizes and shape[-1] == 1:
        over[-1] = 1
    return (0,) * missing + tuple(over)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(size, 1))
    return tuple(steps)


def _int64(where: Layout | None) -> bool:
    return where is None or where[2] is torch.int64


def _unread(table: Layout | None, channels: Axis) -> bool:
    """Whether the only stride that is not 1 is that of a table which is not there."""
    return table is None and channels[1] == channels[3] == 1


def _simplified(axes: list[Axis], looked_up: bool) -> tuple[list[Axis], int]:
    """Axes before the last, joined where memory runs through; and the width of the last."""
    outer = [axis for axis in axes[:-1] if axis[0] != 1]
    joined: list[Axis] = []
    for axis in reversed(outer):
        if joined and _runs_through(axis, joined[0]):
            joined[0] = (axis[0] * joined[0][0], *joined[0][1:])
        else:
            joined.insert(0, axis)
    width = axes[-1][0]
    channels = axes[-1]
    if joined and not looked_up and _runs_through(joined[-1], channels):
        return joined[:-1], joined[-1][0] * width
    return joined, width


def _runs_through(axis: Axis, inner: Axis) -> bool:
    return all(step == inner[0] * small for step, small in zip(axis[1:], inner[1:], strict=True))


def _meets_itself(axes: list[Axis]) -> bool:
    """Whether an output of these axes may have two elements in one place."""
    steps = sorted((axis[3], axis[0]) for axis in axes if axis[0] > 1)
    return any(step < size * smaller for (smaller, size), (step, _) in pairwise(steps))
