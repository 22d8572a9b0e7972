"""The distance of every query from every key, in integers that cannot wrap."""

from typing import Any, Literal, overload

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import may_look
from posenc.positions.checks import Integers, Positions, checked, floats
from posenc.positions.coordinates import Coordinates
from posenc.positions.counted import common_scale
from posenc.positions.steps import the_one

FARTHEST = 2**63 - 1
"""The longest distance; −2^63 is left out, so that every distance has its opposite."""


def pair_distances(
    q_positions: Int64[Tensor, "*batch q_len"] | Integers,
    k_positions: Int64[Tensor, "*batch k_len"] | Integers,
) -> Int64[Tensor, "*batch q_len k_len"]:
    """q_position − k_position of every pair; what would leave int64 stays at its end.

    So order and windows are right at any positions. Where a number is made of the distance, use
    ``checked_distances``.

    Example:
        >>> pair_distances(torch.tensor([2]), torch.tensor([0, 1, 2]))
        tensor([[2, 1, 0]])
        >>> pair_distances(torch.tensor([2**63 - 1]), torch.tensor([-2])) == 2**63 - 1
        tensor([[True]])
    """
    return _distances(q_positions, k_positions, reals=False, refuse=False)


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
    """``pair_distances``, or an error where one leaves int64, on a CPU outside graphs.

    Args:
        q_positions: Where queries stand.
        k_positions: Where keys stand.
        reals: Whether ``Coordinates`` are taken too; their distances have the common scale.

    Example:
        >>> checked_distances([2, 3], [0])
        tensor([[2],
                [3]])
    """
    return _distances(q_positions, k_positions, reals, refuse=True)


def float_distances(
    q_positions: Int64[Tensor, "*batch q_len"] | Positions,
    k_positions: Int64[Tensor, "*batch k_len"] | Positions,
    dtype: torch.dtype,
) -> Float[Tensor, "*batch q_len k_len"]:
    """``checked_distances`` of whole or real positions, rounded once to floats.

    Example:
        >>> float_distances(Coordinates([2.5]), [0, 1], torch.float32)
        tensor([[2.5000, 1.5000]])
    """
    return floats(checked_distances(q_positions, k_positions, reals=True), dtype)


def _distances(queries: Any, keys: Any, reals: bool, refuse: bool) -> Any:
    queries = checked(queries, "q_positions", device=getattr(keys, "device", None), reals=reals)
    keys = checked(keys, "k_positions", device=queries.device, reals=reals)
    if isinstance(queries, Coordinates) or isinstance(keys, Coordinates):
        here, there = common_scale(Coordinates(queries), Coordinates(keys))
        the_one(here.scale)
        return here.with_values(lambda values: _distances(values, there.values, False, refuse))
    found = queries.unsqueeze(-1) - keys.unsqueeze(-2)
    seen = queries.is_cpu and keys.is_cpu and may_look(queries) and may_look(keys)
    if seen and _are_near(queries, keys):
        return found
    if refuse and seen:
        raise ValueError("Positions reach too far: a distance of 2^63 or more is no int64.")
    queries, keys = queries.unsqueeze(-1), keys.unsqueeze(-2)
    # A difference has wrapped where its sign is not that of the query, though the key's is neither.
    wrapped = ((queries ^ keys) & (queries ^ found)) < 0
    ends = torch.where(queries < 0, -FARTHEST, FARTHEST)
    return torch.where(wrapped, ends, found).clamp(min=-FARTHEST)


def _are_near(queries: Tensor, keys: Tensor) -> bool:
    """Whether no difference leaves int64."""
    if not queries.numel() or not keys.numel():
        return True
    (low_q, high_q), (low_k, high_k) = queries.aminmax(), keys.aminmax()
    return max(int(high_q) - int(low_k), int(high_k) - int(low_q)) <= FARTHEST


def around(distance: Int64[Tensor, "*shape"], period: int) -> Int64[Tensor, "*shape"]:
    """The shorter way around a ring, within ±period/2."""
    forward = distance.remainder(period)
    back = forward - period
    half = period - forward == forward
    return torch.where(half & (distance < 0), back, torch.where(forward > -back, back, forward))
