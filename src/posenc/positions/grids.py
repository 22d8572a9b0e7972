"""Points of a grid with any number of axes: images, video and volumes."""

from collections.abc import Sequence
from numbers import Integral

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.checks import checked
from posenc.positions.padding import checked_mask
from posenc.positions.ranges import consecutive
from posenc.positions.whole import CODES, check_whole_numbers

MOST = 2**62


def grid(
    *sizes: int,
    start: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
    order: Sequence[int] | None = None,
    device: torch.device | str | None = None,
) -> Int64[Tensor, "seq axes"]:
    """Every point of a grid, row after row: ``grid(height, width)`` gives ``(y, x)``.

    Coordinate a of the point with index i_a is start_a + stride_a · i_a. Coordinates stand as the
    sizes do; ``order`` alone says in which order points are visited.

    Args:
        sizes: Number of points along each axis.
        start: The first coordinate, of each axis or of all.
        stride: From one coordinate to the next, of each axis or of all.
        order: The axes from the slowest to the fastest; as they stand by default, so that the last
            one runs fastest.
        device: Where to make them.

    Raises:
        TypeError: A size is no whole number.
        ValueError: No size is given, or one is negative; ``start`` or ``stride`` are not one number
            an axis, or leave int64; ``order`` does not name each axis once.

    Example:
        >>> grid(2, 3).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
        >>> grid(2, 2, start=(10, 0), stride=4, order=(1, 0)).tolist()
        [[10, 0], [14, 0], [10, 4], [14, 4]]
    """
    count = _checked_sizes(sizes)
    starts, strides = _each(start, count, "start"), _each(stride, count, "stride")
    order = _checked_order(order, count)
    axes = []
    for axis in order:
        _check_reach(sizes[axis], starts[axis], strides[axis])
        axes.append(consecutive(sizes[axis], device=device) * strides[axis] + starts[axis])
    visited = torch.meshgrid(*axes, indexing="ij")
    points = [visited[order.index(axis)] for axis in range(count)]
    return torch.stack(points, dim=-1).flatten(0, -2)


def centers(
    *sizes: int,
    cell: int | Sequence[int] = 1,
    start: int | Sequence[int] = 0,
    order: Sequence[int] | None = None,
    device: torch.device | str | None = None,
) -> Int64[Tensor, "seq axes"]:
    """The centers of the cells of a grid, in halves of a unit: 2 · start + cell · (2i + 1).

    In halves all centers are whole numbers, whatever the size of a cell, so that tokens of several
    resolutions stand in one system of coordinates: coarse cells are ``cell`` fine ones wide.

    Args:
        sizes: Number of cells along each axis.
        cell: Size of a cell, along each axis or all, in units.
        start: Where the first cell begins, in units.
        order: As of ``grid``.
        device: Where to make them.

    Raises:
        TypeError: As ``grid`` does.
        ValueError: Likewise.

    Example:
        >>> fine, coarse = centers(4, 4), centers(2, 2, cell=2)
        >>> fine[:2].tolist(), coarse[:2].tolist()
        ([[1, 1], [1, 3]], [[2, 2], [2, 6]])
        >>> torch.cat((fine, coarse)).shape
        torch.Size([20, 2])
    """
    count = _checked_sizes(sizes)
    cells, starts = _each(cell, count, "cell"), _each(start, count, "start")
    return grid(
        *sizes,
        start=[2 * first + size for first, size in zip(starts, cells, strict=True)],
        stride=[2 * size for size in cells],
        order=order,
        device=device,
    )


def masked_grid(mask: Tensor) -> Int64[Tensor, "*batch seq four"]:
    """(y, x, rows, columns) of each pixel of padded images: where it stands, and of how many.

    y counts the real pixels above it in its column, x those to the left of it in its row, from 0;
    ``rows`` and ``columns`` are the numbers of real pixels in all of its column and its row. These
    are DETR's cumulative sums of the mask (less 1), from which it takes y / rows and x / columns,
    so that images of any size share one range. Padding counts for nothing: it stands where the
    real pixel before it does, and at −1 where there is none.

    Args:
        mask: ``[*batch, height, width]``, true (or nonzero) where a pixel is real; of ones for an
            image without padding.

    Raises:
        TypeError: ``mask`` is floating.
        ValueError: It has no height and width.

    Reference:
        Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4
        (arXiv:2005.12872), and ``PositionEmbeddingSine`` of facebookresearch/detr.

    Example:
        >>> masked_grid(torch.tensor([[True, True, False]])).tolist()
        [[0, 0, 1, 2], [0, 1, 1, 2], [-1, 1, 0, 2]]
    """
    marked = checked_mask(mask)
    if mask.ndim < 2:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; it must be [*batch, height, width], true where "
            f"a pixel is real."
        )
    real = marked.to(torch.int64)
    counted = [real.cumsum(axis) for axis in (-2, -1)]
    totals = [real.sum(axis, keepdim=True).expand_as(real) for axis in (-2, -1)]
    return torch.stack((counted[0] - 1, counted[1] - 1, *totals), dim=-1).flatten(-3, -2)


def on_levels(
    points: Sequence[Int64[Tensor, "*batch _ coordinates"]],
) -> Int64[Tensor, "*batch seq longer"]:
    """The points of several resolutions in one row, each with the number of its level behind it.

    Args:
        points: Those of each level, ``[*batch, seq, coordinates]``, with equal batch axes.

    Raises:
        ValueError: There is none, or they differ in their coordinates.

    Example:
        >>> on_levels([grid(1, 2), grid(1, 1)]).tolist()
        [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    each = [checked(of_one, "points") for of_one in points]
    if not each or len({(*one.shape[:-2], one.shape[-1]) for one in each}) != 1:
        raise ValueError(
            f"points have shapes {[tuple(one.shape) for one in each]}; give one or more levels, "
            f"[*batch, seq, coordinates], that differ in their number of points alone."
        )
    marked = [
        torch.cat((one, torch.full_like(one[..., :1], level)), dim=-1)
        for level, one in enumerate(each)
    ]
    return torch.cat(marked, dim=-2)


def _checked_sizes(sizes: tuple[int, ...]) -> int:
    """The number of axes; under torch.compile a size may be a symbol."""
    check_whole_numbers(**{f"sizes[{axis}]": size for axis, size in enumerate(sizes)})
    if not sizes or any(isinstance(size, Integral) and size < 0 for size in sizes):
        raise ValueError(f"sizes are {sizes}; give one or more, each 0 or more.")
    return len(sizes)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _each(value: int | Sequence[int], count: int, name: str) -> tuple[int, ...]:
    several = isinstance(value, Sequence) and not isinstance(value, CODES)
    values = tuple(value) if several else (value,) * count  # type: ignore[arg-type]
    whole = all(map(_is_whole, values))
    if len(values) != count or not whole:
        raise ValueError(
            f"{name} is {value!r}; it must be a whole number, or one for each of {count} axes."
        )
    return tuple(int(one) for one in values)  # type: ignore[arg-type]


def _check_reach(size: int, start: int, stride: int) -> None:
    last = start + stride * (int(size) - 1) if isinstance(size, Integral) else start
    if max(abs(start), abs(last), abs(stride)) > MOST:
        raise ValueError(
            f"A grid of {size} points from {start} in steps of {stride} leaves int64; coordinates "
            f"may be up to 2^62."
        )


def _checked_order(order: Sequence[int] | None, count: int) -> list[int]:
    if order is None:
        return list(range(count))
    several = isinstance(order, Sequence) and not isinstance(order, CODES)
    if not several or not all(map(_is_whole, order)) or sorted(order) != list(range(count)):
        raise ValueError(
            f"order is {order!r}; it must name each axis once, as {tuple(range(count))}, from the "
            f"slowest to the fastest."
        )
    return list(order)
