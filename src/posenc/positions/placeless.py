"""Tokens that stand nowhere in a grid: class tokens, registers, padding."""

from collections.abc import Sequence
from numbers import Integral
from typing import cast, overload

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc.guards import demand, graph_looks, may_look
from posenc.positions.checks import Integers, Positions, checked, is_one_a_row
from posenc.positions.common import MANY, NOWHERE
from posenc.positions.coordinates import Coordinates
from posenc.positions.whole import CODES, check_whole_numbers

PADDING = NOWHERE + MANY - 1
"""Every coordinate of padding behind packed images, the last of these marks."""


@overload
def prefixed(
    points: Coordinates, count: int = 1, *, at: int | Sequence[int] | None = None
) -> Coordinates: ...


@overload
def prefixed(
    points: Tensor | Integers, count: int = 1, *, at: int | Sequence[int] | None = None
) -> Tensor: ...


def prefixed(
    points: Int64[Tensor, "*batch seq axes"] | Positions,
    count: int = 1,
    *,
    at: int | Sequence[int] | None = None,
) -> Int64[Tensor, "*batch longer axes"] | Coordinates:
    """``points`` behind ``count`` class tokens or registers.

    Without ``at`` these stand nowhere: their coordinates are a mark (see ``placeless``) and their
    number, which stay with them when tokens are dropped, packed or cut among devices. Encodings of
    grids that know the mark leave such tokens alone, or give them rows of their own.

    Args:
        points: Points of a grid. Coordinates keep their scale; put tokens before them at last,
            since what has no place cannot be moved.
        count: How many tokens are put before them.
        at: The point where all of them stand, one coordinate for each axis or for all; in steps of
            the scale for coordinates.

    Raises:
        TypeError: ``points`` are not integers, or ``at`` holds no whole numbers.
        ValueError: They have no axes, ``count`` is negative or too large, ``at`` has other axes, or
            marks of other tokens are there, whose numbers would be given twice.

    Example:
        >>> prefixed(torch.tensor([[0, 0], [0, 1]]), at=0).tolist()
        [[0, 0], [0, 0], [0, 1]]
        >>> placeless(prefixed(torch.tensor([[0, 0], [0, 1]]), 2))
        tensor([ True,  True, False, False])
    """
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: prefixed(values, count, at=at))
    points = _checked_points(points)
    if isinstance(count, bool) or not isinstance(count, Integral) or not 0 <= count < MANY:
        raise ValueError(f"count is {count!r}; it must be a whole number from 0 to {MANY - 1}.")
    axes = points.shape[-1]
    if at is None:
        if count:
            _check_unmarked(points)
        rows = torch.arange(int(count), device=points.device).unsqueeze(-1).expand(-1, axes)
        rows = rows + NOWHERE
    else:
        several = isinstance(at, Sequence) and not isinstance(at, CODES)
        place = tuple(at) if several else (at,) * axes  # type: ignore[arg-type]
        check_whole_numbers(**{f"at[{axis}]": one for axis, one in enumerate(place)})
        if len(place) != axes:
            raise ValueError(f"at is {at!r}; the points have {axes} axes. Give a coordinate each.")
        rows = torch.tensor([place] * int(count), dtype=torch.int64, device=points.device)
        rows = rows.reshape(int(count), axes)
    return torch.cat((rows.expand(*points.shape[:-2], -1, -1), points), dim=-2)


def _check_unmarked(points: Tensor) -> None:
    """Refuse points that hold class tokens or registers already; padding has a mark of its own."""
    marked = placeless(points) & (points[..., 0] != PADDING)
    words = (
        "points hold class tokens or registers already, and those put before them would have the "
        "same numbers. Put all before the grid at once, as prefixed(grid(14, 14), 5), or pass at= "
        "the point where these stand."
    )
    if graph_looks(marked):
        demand(~marked.any(), words)
    elif may_look(marked) and bool(marked.any()):
        raise ValueError(words)


def placeless(
    points: Int64[Tensor, "*batch seq axes"] | Coordinates,
) -> Bool[Tensor, "*batch seq"]:
    """Which tokens stand nowhere, as those that ``prefixed`` and ``packed_grids`` put there.

    Example:
        >>> placeless(torch.tensor([[NOWHERE, NOWHERE], [0, -5]]))
        tensor([ True, False])
    """
    values = points.values if isinstance(points, Coordinates) else checked(points, "points")
    return values[..., 0] < NOWHERE + MANY


@overload
def with_places(points: Coordinates, nowhere: Tensor) -> Coordinates: ...


@overload
def with_places(points: Tensor, nowhere: Tensor) -> Tensor: ...


def with_places(
    points: Int64[Tensor, "*batch seq axes"] | Coordinates, nowhere: Bool[Tensor, "*batch seq"]
) -> Int64[Tensor, "*batch seq axes"] | Coordinates:
    """``points`` with those that stand nowhere at 0, for who computes with all alike.

    Example:
        >>> points = torch.tensor([[NOWHERE, NOWHERE], [0, -5]])
        >>> with_places(points, placeless(points))
        tensor([[ 0,  0],
                [ 0, -5]])
    """
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: values.masked_fill(nowhere.unsqueeze(-1), 0))
    return points.masked_fill(nowhere.unsqueeze(-1), 0)


@overload
def among_places(points: Coordinates) -> tuple[Coordinates, Tensor | None]: ...


@overload
def among_places(points: Tensor) -> tuple[Tensor, Tensor | None]: ...


@overload
def among_places(points: Tensor | Coordinates) -> tuple[Tensor | Coordinates, Tensor | None]: ...


def among_places(
    points: Int64[Tensor, "*batch seq axes"] | Coordinates,
) -> tuple[Int64[Tensor, "*batch seq axes"] | Coordinates, Bool[Tensor, "*batch seq"] | None]:
    """``with_places``, and which tokens stand nowhere; ``None`` where none does, as can be seen.

    On accelerators, where a look would wait, it is not looked.

    Example:
        >>> among_places(torch.tensor([[0, -5]]))
        (tensor([[ 0, -5]]), None)
    """
    nowhere = placeless(points)
    if nowhere.is_cpu and may_look(nowhere) and not bool(nowhere.any()):
        return points, None
    return with_places(points, nowhere), nowhere  # type: ignore[call-overload]


def zeroed(
    table: Float[Tensor, "*tokens dim"], nowhere: Bool[Tensor, "*tokens"] | None
) -> Float[Tensor, "*tokens dim"]:
    """``table`` with rows of zeros for the tokens that stand nowhere, as ``among_places`` has them.

    Example:
        >>> zeroed(torch.ones(2, 1), torch.tensor([True, False]))
        tensor([[0.],
                [1.]])
    """
    return table if nowhere is None else table.masked_fill(nowhere.unsqueeze(-1), 0.0)


@overload
def kept(points: Coordinates, indices: Tensor) -> Coordinates: ...


@overload
def kept(points: Tensor | Integers, indices: Tensor) -> Tensor: ...


def kept(
    points: Int64[Tensor, "*rows seq axes"] | Positions, indices: Int64[Tensor, "*batch some"]
) -> Int64[Tensor, "*batch some axes"] | Coordinates:
    """The points of the tokens that are kept where others are dropped, in the order of ``indices``.

    Args:
        points: Points for all rows of the batch, ``[seq, axes]``, or ``[*batch, seq, axes]``;
            coordinates keep their scale.
        indices: Which tokens of each row are kept, as MAE's ``ids_keep``.

    Raises:
        TypeError: ``points`` or ``indices`` are not integers.
        ValueError: ``points`` have no axes, or not the rows of ``indices``.
        IndexError: An index is none of a token, as far as can be seen.

    Example:
        >>> kept([[0, 0], [0, 1], [1, 0]], torch.tensor([[2, 0], [1, 2]])).tolist()
        [[[1, 0], [0, 0]], [[0, 1], [1, 0]]]
    """
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: kept(values, indices))
    points = _checked_points(points)
    indices = checked(indices, "indices", device=points.device)
    _check_indices(points, indices)
    batched = points.expand(*indices.shape[:-1], *points.shape[-2:])
    return batched.gather(-2, indices.unsqueeze(-1).expand(*indices.shape, points.shape[-1]))


def _check_indices(points: Tensor, indices: Tensor) -> None:
    rows, tokens = points.shape[:-2], points.shape[-2]
    if not indices.ndim or not is_one_a_row(rows, indices.shape[:-1]):
        raise ValueError(
            f"indices have shape {tuple(indices.shape)}, and points {tuple(points.shape)}; give "
            f"[*batch, some] indices of each row, {(*rows, 'some')}, or points for all rows."
        )
    if indices.is_cpu and may_look(indices) and indices.numel():
        first, last = (int(end) for end in indices.aminmax())
        if first < 0 or last >= tokens:
            raise IndexError(
                f"indices run from {first} to {last}, and the points are those of tokens 0 … "
                f"{tokens - 1}. Give indices of these."
            )


def _checked_points(points: Tensor | Integers) -> Tensor:
    points = cast(Tensor, checked(points, "points", reals=True))  # no Coordinates come here
    if points.ndim < 2:
        raise ValueError(
            f"points have shape {tuple(points.shape)}; they must be [*batch, seq, axes], as of "
            f"posenc.positions.grid."
        )
    return points
