"""Tokens that stand nowhere in a grid: class tokens, registers, padding."""

from collections.abc import Sequence
from typing import TypeVar, overload

import torch
from jaxtyping import Bool, Int64, Shaped
from torch import Tensor

from posenc.guards import may_look
from posenc.positions.checks import Integers, Positions, checked
from posenc.positions.coordinates import Coordinates
from posenc.positions.counted import MANY, NOWHERE

Points = TypeVar("Points", bound=Tensor | Coordinates)

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
        points: Points of a grid. Shift and scale coordinates before: what has no place cannot move.
        count: How many tokens are put before them.
        at: The point where all of them stand, one coordinate for each axis or for all; in steps of
            the scale for coordinates.

    Example:
        >>> prefixed(torch.tensor([[0, 0], [0, 1]]), at=0).tolist()
        [[0, 0], [0, 0], [0, 1]]
        >>> placeless(prefixed(torch.tensor([[0, 0], [0, 1]]), 2))
        tensor([ True,  True, False, False])
    """
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: prefixed(values, count, at=at))
    points = checked(points, "points")
    axes = points.shape[-1]
    if at is None:
        marked = placeless(points) & (points[..., 0] != PADDING)
        if count and marked.is_cpu and may_look(marked) and bool(marked.any()):
            raise ValueError("points hold class tokens already; put all before the grid at once.")
        rows = torch.arange(count, device=points.device).unsqueeze(-1) + NOWHERE
    else:
        rows = torch.tensor(at, dtype=torch.int64, device=points.device)
    rows = rows.expand(*points.shape[:-2], count, axes)
    return torch.cat((rows, points), dim=-2)


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


def with_places(points: Points, nowhere: Bool[Tensor, "*batch seq"]) -> Points:
    """``points`` with those that stand nowhere moved to 0."""
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: with_places(values, nowhere))
    return zeroed(points, nowhere)  # type: ignore[return-value]


def among_places(points: Points) -> tuple[Points, Bool[Tensor, "*batch seq"] | None]:
    """``with_places``, and which tokens stand nowhere; ``None`` if a look on the CPU finds none."""
    nowhere = placeless(points)
    if nowhere.is_cpu and may_look(nowhere) and not bool(nowhere.any()):
        return points, None
    return with_places(points, nowhere), nowhere


def zeroed(
    table: Shaped[Tensor, "*tokens dim"], nowhere: Bool[Tensor, "*tokens"] | None
) -> Shaped[Tensor, "*tokens dim"]:
    """``table`` with rows of zeros for the tokens that stand nowhere, as of ``among_places``."""
    return table if nowhere is None else table.masked_fill(nowhere.unsqueeze(-1), 0)


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

    Example:
        >>> kept([[0, 0], [0, 1], [1, 0]], torch.tensor([[2, 0], [1, 2]])).tolist()
        [[[1, 0], [0, 0]], [[0, 1], [1, 0]]]
    """
    if isinstance(points, Coordinates):
        return points.with_values(lambda values: kept(values, indices))
    points = checked(points, "points")
    indices = checked(indices, "indices", device=points.device)
    batched = points.expand(*indices.shape[:-1], *points.shape[-2:])
    return batched.gather(-2, indices.unsqueeze(-1).expand(*indices.shape, points.shape[-1]))
