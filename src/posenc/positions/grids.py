"""Points of a grid with any number of axes: images, video and volumes."""

from collections.abc import Sequence
from fractions import Fraction
from operator import index

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice, check_whole
from posenc.positions.checks import checked
from posenc.positions.coordinates import Coordinates
from posenc.positions.padding import checked_mask
from posenc.positions.placeless import PADDING, prefixed
from posenc.positions.ranges import consecutive


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

    Example:
        >>> grid(2, 3).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
        >>> grid(2, 2, start=(10, 0), stride=4, order=(1, 0)).tolist()
        [[10, 0], [14, 0], [10, 4], [14, 4]]
    """
    count = len(sizes)
    starts, strides = _each(start, count, "start"), _each(stride, count, "stride")
    order = list(range(count)) if order is None else list(order)
    if sorted(order) != list(range(count)):
        raise ValueError(f"order is {order}; it must name each of {count} axes once.")
    axes = [consecutive(sizes[a], device=device) * strides[a] + starts[a] for a in order]
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

    Example:
        >>> fine, coarse = centers(4, 4), centers(2, 2, cell=2)
        >>> fine[:2].tolist(), coarse[:2].tolist()
        ([[1, 1], [1, 3]], [[2, 2], [2, 6]])
        >>> torch.cat((fine, coarse)).shape
        torch.Size([20, 2])
    """
    cells, starts = _each(cell, len(sizes), "cell"), _each(start, len(sizes), "start")
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

    Reference:
        Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4
        (arXiv:2005.12872), and ``PositionEmbeddingSine`` of facebookresearch/detr.

    Example:
        >>> masked_grid(torch.tensor([[True, True, False]])).tolist()
        [[0, 0, 1, 2], [0, 1, 1, 2], [-1, 1, 0, 2]]
    """
    real = checked_mask(mask).to(torch.int64)
    y, x = (real.cumsum(axis) - 1 for axis in (-2, -1))
    rows, columns = (real.sum(axis, keepdim=True).expand_as(real) for axis in (-2, -1))
    return torch.stack((y, x, rows, columns), dim=-1).flatten(-3, -2)


def on_levels(
    points: Sequence[Int64[Tensor, "*batch _ coordinates"]],
) -> Int64[Tensor, "*batch seq longer"]:
    """The points of several resolutions in one row, each with the number of its level behind it.

    Args:
        points: Those of each level, ``[*batch, seq, coordinates]``, with equal batch axes.

    Example:
        >>> on_levels([grid(1, 2), grid(1, 1)]).tolist()
        [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    each = [checked(of_one, "points") for of_one in points]
    marked = [
        torch.cat((one, torch.full_like(one[..., :1], level)), dim=-1)
        for level, one in enumerate(each)
    ]
    return torch.cat(marked, dim=-2)


def normalized_grid(
    *sizes: int,
    low: int = -1,
    at: str = "centers",
    by: str = "each",
    device: torch.device | str | None = None,
) -> Coordinates:
    """The points of a grid, ``[seq, axes]``, each axis from ``low`` to 1 at every resolution.

    Centers of patches are (2i + 1) / n − 1, or half of (2i + 1) / n from 0 on: they stay half a
    patch away from the ends. Corners are 2i / (n − 1) − 1, or i / (n − 1): the first and the last
    point stand at the ends, as with ``align_corners=True``; a single one stands in the middle, or
    at 0. All are exact: a third is a third.

    Args:
        sizes: Number of points n along each axis.
        low: −1, or 0.
        at: ``"centers"`` or ``"corners"``.
        by: What coordinates are divided by: the size of ``"each"`` axis, or along all axes the
            smallest (``"min"``) or the largest (``"max"``), so that patches stay square. Then the
            other axes begin at ``low`` and end elsewhere, as in DINOv3.
        device: Where to make them.

    Example:
        >>> normalized_grid(3).tolist()
        [[Fraction(-2, 3)], [Fraction(0, 1)], [Fraction(2, 3)]]
        >>> normalized_grid(2, 3, low=0, at="corners").tolist()[-1]
        [Fraction(1, 1), Fraction(1, 1)]
    """
    check_whole(**{f"sizes[{axis}]": size for axis, size in enumerate(sizes)})
    check_choice(("centers", "corners"), at=at)
    check_choice(("each", "min", "max"), by=by)
    if low not in (-1, 0):
        raise ValueError(f"low is {low!r}; it must be -1 or 0.")
    chosen = {"each": sizes, "min": (min(sizes),) * len(sizes), "max": (max(sizes),) * len(sizes)}
    lengths = [n - (at == "corners") for n in chosen[by]]  # of which i or i + 1/2 is the part
    if any(length == 0 and n > 1 for length, n in zip(lengths, sizes, strict=True)):
        raise ValueError(f"sizes are {sizes}: corners are not divided by a side of one point.")
    first = int(at == "centers")
    starts = [first + low * length for length in lengths]
    halves = grid(*sizes, start=starts, stride=2, device=device)
    span = 1 if low else 2
    return Coordinates(halves, scale=[Fraction(1, span * (length or 1)) for length in lengths])


def packed_grids(
    sizes: Sequence[Sequence[int]],
    *,
    prefix: int = 0,
    length: int | None = None,
    device: torch.device | str | None = None,
) -> tuple[Int64[Tensor, "seq axes"], Int64[Tensor, "seq"]]:
    """The points of many images side by side, and whose they are.

    Each image counts from 0 along its axes, whatever stands before it. The second tensor numbers
    the images: given to ``posenc.attention`` as ``document_ids``, no image sees another.

    Args:
        sizes: The sizes of each image, all with as many axes.
        prefix: Class tokens or registers before each image; they stand nowhere, and belong to it.
        length: What the row is padded to, for several rows in one batch. Padding stands nowhere, in
            a document of its own with the number −1.
        device: Where to make them.

    Reference:
        Dehghani et al. 2023, "Patch n' Pack: NaViT", section 3.1 (arXiv:2307.06304).

    Example:
        >>> points, images = packed_grids([(1, 2), (2, 1)], length=5)
        >>> points[:4].tolist(), images.tolist()
        ([[0, 0], [0, 1], [0, 0], [1, 0]], [0, 0, 1, 1, -1])
    """
    images = [prefixed(grid(*size, device=device), prefix) for size in sizes]
    points = torch.cat(images)
    counts = torch.tensor([len(image) for image in images], device=device)
    ids = torch.arange(len(images), device=device).repeat_interleave(counts)
    if length is None:
        return points, ids
    missing = length - len(points)
    if missing < 0:
        raise ValueError(f"The images have {len(points)} tokens together, and length is {length}.")
    nowhere = points.new_full((missing, points.shape[1]), PADDING)
    return torch.cat((points, nowhere)), torch.cat((ids, ids.new_full((missing,), -1)))


def _each(value: int | Sequence[int], count: int, name: str) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, Sequence) else (value,) * count
    if len(values) != count:
        raise ValueError(f"{name} is {value!r}; it must be one number, or one for each axis.")
    return tuple(map(index, values))
