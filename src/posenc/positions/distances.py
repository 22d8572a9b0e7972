"""The distance of every query from every key, in integers that cannot wrap."""

from collections.abc import Callable
from typing import Any, Literal, overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import demand, graph_looks, may_look
from posenc.positions.checks import Positions, checked, floats
from posenc.positions.coordinates import Coordinates, common_scale
from posenc.positions.scales import the_one

FARTHEST = 2**63 - 1
"""The longest distance; −2^63 is left out, so that every distance has its opposite."""


@overload
def pair_distances(
    q_positions: Tensor | Positions, k_positions: Tensor | Positions, *, reals: Literal[False] = ...
) -> Tensor: ...


@overload
def pair_distances(
    q_positions: Tensor | Positions, k_positions: Tensor | Positions, *, reals: bool
) -> Tensor | Coordinates: ...


def pair_distances(
    q_positions: Int64[Tensor, "*batch q_len"] | Positions,
    k_positions: Int64[Tensor, "*batch k_len"] | Positions,
    *,
    reals: bool = False,
) -> Int64[Tensor, "*batch q_len k_len"] | Coordinates:
    """q_position − k_position of every pair; what would leave int64 stays at its end.

    So a key far behind its query is never taken for one far ahead of it: order and windows come out
    right at whatever positions. For a number that is made of the distance itself see
    ``checked_distances``. With ``reals`` coordinates have distances too, at their common scale.

    Raises:
        TypeError: Positions are not integers, nor coordinates with ``reals``.

    Example:
        >>> pair_distances(torch.tensor([2]), torch.tensor([0, 1, 2]))
        tensor([[2, 1, 0]])
        >>> pair_distances(torch.tensor([2**63 - 1]), torch.tensor([-2])) == 2**63 - 1
        tensor([[True]])
    """
    if reals and _real(q_positions, k_positions):
        return _of_coordinates(pair_distances, q_positions, k_positions)
    queries, keys = _both(q_positions, k_positions)
    ends = _ends(queries), _ends(keys)
    found = queries.unsqueeze(-1) - keys.unsqueeze(-2)
    return found if _near(*ends) else _unwrapped(found, queries, keys)


@overload
def checked_distances(
    q_positions: Tensor | Positions, k_positions: Tensor | Positions, *, reals: Literal[False] = ...
) -> Tensor: ...


@overload
def checked_distances(
    q_positions: Tensor | Positions, k_positions: Tensor | Positions, *, reals: bool
) -> Tensor | Coordinates: ...


def checked_distances(
    q_positions: Int64[Tensor, "*batch q_len"] | Positions,
    k_positions: Int64[Tensor, "*batch k_len"] | Positions,
    *,
    reals: bool = False,
) -> Int64[Tensor, "*batch q_len k_len"] | Coordinates:
    """``pair_distances``, or an error where one leaves int64: then it is none that a bias may have.

    Under ``vmap``, and on accelerators, where a look would wait, nothing is refused; a graph looks
    when it runs.

    Raises:
        TypeError: Positions are not integers, nor coordinates with ``reals``.
        ValueError: Two of them are 2^63 or more apart.

    Example:
        >>> checked_distances([2**62], [-2**62])
        Traceback (most recent call last):
        ...
        ValueError: q_positions reach 4611686018427387904 and k_positions -4611686018427387904; a \
distance of 2^63 or more is no int64. Count both from another start.
    """
    if reals and _real(q_positions, k_positions):
        return _of_coordinates(checked_distances, q_positions, k_positions)
    queries, keys = _both(q_positions, k_positions)
    of_q, of_k = _ends(queries), _ends(keys)
    found = queries.unsqueeze(-1) - keys.unsqueeze(-2)
    if of_q is None or of_k is None:
        unwrapped = _unwrapped(found, queries, keys)
        if graph_looks(queries, keys):
            demand((found == unwrapped).all(), "A distance of 2^63 or more is no int64.")
        return unwrapped
    if found.numel() and not _near(of_q, of_k):
        (least_q, most_q), (least_k, most_k) = of_q, of_k
        q, k = (most_q, least_k) if most_q - least_k > FARTHEST else (least_q, most_k)
        raise ValueError(
            f"q_positions reach {q} and k_positions {k}; a distance of 2^63 or more is no int64. "
            f"Count both from another start."
        )
    return found


def float_distances(
    q_positions: Int64[Tensor, "*batch q_len"] | Positions,
    k_positions: Int64[Tensor, "*batch k_len"] | Positions,
    dtype: torch.dtype,
) -> Float[Tensor, "*batch q_len k_len"]:
    """``checked_distances`` of whole or real positions as floats, for formulas of reals.

    They are exact before they are rounded.

    Raises:
        TypeError: Positions are neither integers nor coordinates.
        ValueError: Two of them are 2^63 steps or more apart, or further than float16 counts, where
            that is ``dtype``.

    Example:
        >>> float_distances(Coordinates([2.5]), [0, 1], torch.float32)
        tensor([[2.5000, 1.5000]])
    """
    if not _real(q_positions, k_positions):
        return floats(checked_distances(q_positions, k_positions), dtype)
    return _of_coordinates(checked_distances, q_positions, k_positions).floats(dtype)


def _real(*positions: Tensor | Positions) -> bool:
    return isinstance(positions[0], Coordinates) or isinstance(positions[1], Coordinates)


def _of_coordinates(
    distances: Callable[..., Tensor], queries: Tensor | Positions, keys: Tensor | Positions
) -> Coordinates:
    """Distances in steps of one size; whole positions beside coordinates count as such."""
    here, there = common_scale(*map(Coordinates, _both(queries, keys, reals=True)))
    the_one(here.scale)
    return here.with_values(lambda values: distances(values, there.values))


def _both(queries: Any, keys: Any, *, reals: bool = False) -> tuple[Any, Any]:
    """Both checked; what is no tensor yet is made beside the other."""
    made = [each.device for each in (queries, keys) if isinstance(each, Tensor | Coordinates)]
    device = made[0] if made else None
    return (
        checked(queries, "q_positions", device=device, reals=reals),
        checked(keys, "k_positions", device=device, reals=reals),
    )


Ends = tuple[int, int]


def _ends(positions: Tensor) -> Ends | None:
    """The least and the largest, where a look costs nothing; on accelerators it would wait."""
    if not positions.is_cpu or not may_look(positions):
        return None
    if not positions.numel():
        return 0, 0
    low, high = (int(end) for end in positions.aminmax())
    return low, high


def _near(queries: Ends | None, keys: Ends | None) -> bool:
    """Whether it is known that no difference leaves int64."""
    if queries is None or keys is None:
        return False
    return max(queries[1] - keys[0], keys[1] - queries[0]) <= FARTHEST


def _unwrapped(found: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    queries, keys = queries.unsqueeze(-1), keys.unsqueeze(-2)
    # A difference has wrapped where its sign is not that of the query, though the key's is neither.
    wrapped = ((queries ^ keys) & (queries ^ found)) < 0
    ends = torch.where(queries < 0, -FARTHEST, FARTHEST)
    return torch.where(wrapped, ends, found).clamp(min=-FARTHEST)
