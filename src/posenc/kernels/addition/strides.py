"""How a sum walks through memory: strides checked, simplified and planned once for each."""

from ctypes import Structure, c_int64
from functools import lru_cache

import torch

from posenc.kernels.strides import FORMATS, Strided, contiguous, may_meet_itself

AXES = 3

Axis = tuple[int, ...]
"""Size; strides of x, the table, the output, ids and positions."""


class AdditionPlan(Structure):
    """``struct addition_plan`` of addition.c: sizes and strides, in elements, and no addresses."""

    _fields_ = [
        ("format", c_int64),
        ("sizes", c_int64 * AXES),
        ("width", c_int64),
        *[
            (name, c_int64 * AXES)
            for name in ("x_steps", "table_steps", "out_steps", "ids_steps", "positions_steps")
        ],
        *[
            (name, c_int64)
            for name in (
                *("with_table", "with_ids", "with_positions"),
                *("x_rows", "x_row", "table_rows", "table_row"),
            )
        ],
    ]


@lru_cache(maxsize=1024)
def addition_plan(
    x: Strided,
    table: Strided | None,
    out: Strided | None,
    ids: Strided | None = None,
    positions: Strided | None = None,
) -> tuple[AdditionPlan, tuple[int, ...]] | None:
    """The plan, and the shape of the result; ``None`` for what no kernel takes.

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
    if table is None and positions is not None:
        return None
    shape = x[0] if ids is None else (*ids[0], x[0][-1])
    if not shape or (out is not None and (out[0] != shape or out[2] is not x[2])):
        return None
    contents = [_over(x, shape, ids), _over(table, shape, positions)]
    contents.append(_over(out, shape) if out is not None else contiguous(shape))
    rows = [(where, _over(where, shape[:-1])) for where in (ids, positions)]
    if None in contents or any(row is None or not _int64(where) for where, row in rows):
        return None
    tokens = [*contents, *[(*row, where is not None) for where, row in rows if row is not None]]
    axes = list(zip(shape, *tokens, strict=True))  # type: ignore[arg-type]
    if any(step != 1 for step in axes[-1][1:4]) and not _unread(table, axes[-1]):
        return None
    looked_up = ids is not None or positions is not None
    outer, width = _simplified(axes, looked_up)
    sizes, out_steps = zip(*[(axis[0], axis[3]) for axis in outer], (width, 1), strict=True)
    if len(outer) > AXES or may_meet_itself(sizes, out_steps):
        return None
    outer = [(1, *[0] * 5)] * (AXES - len(outer)) + outer
    sizes, *steps = (tuple(column) for column in zip(*outer, strict=True))
    plan = AdditionPlan(index, sizes, width, *steps, table is not None)
    if ids is not None:
        plan.with_ids, plan.x_rows, plan.x_row = True, x[0][0], x[1][0]
    if positions is not None and table is not None:
        plan.with_positions, plan.table_rows, plan.table_row = True, table[0][0], table[1][0]
    return plan, shape


def _over(
    x: Strided | None, shape: tuple[int, ...], looked_up: Strided | None = None
) -> tuple[int, ...] | None:
    """Strides over all axes of ``shape``, 0 along those that are broadcast."""
    if x is None:
        return (0,) * len(shape)
    sizes, steps, _ = x
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


def _int64(where: Strided | None) -> bool:
    return where is None or where[2] is torch.int64


def _unread(table: Strided | None, channels: Axis) -> bool:
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
