"""Where the tokens of a pair are taken to stand, where that depends on the pair."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@dataclass(frozen=True)
class Remapped:
    """Where the tokens of some pairs are taken to stand.

    Attributes:
        queries: ``[*batch, q_len]``.
        keys: ``[*batch, k_len]``.
        where: ``[*batch, q_len, k_len]``, true for these pairs.
    """

    queries: Int64[Tensor, "..."]
    keys: Int64[Tensor, "..."]
    where: Bool[Tensor, "..."]


@runtime_checkable
class Remapping(Protocol):
    """A change of position for some pairs of a query and a key; the others stay where they are.

    Attributes:
        is_relative: Claim: a shift of all positions changes no distance.
    """

    is_relative: ClassVar[bool]

    def moves(self, q_positions: Tensor, k_positions: Tensor) -> tuple[Remapped, ...]:
        """The pairs that move, in groups that do not overlap."""
        ...


def pair_differences(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """q − k of every pair.

    Example:
        >>> pair_differences(torch.tensor([2]), torch.tensor([0, 1, 2]))
        tensor([[2, 1, 0]])
    """
    return q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)


def remapped_distance(
    of: Remapping,
    q_positions: Int64[Tensor, "*batch q_len"],
    k_positions: Int64[Tensor, "*batch k_len"],
) -> Int64[Tensor, "*batch q_len k_len"]:
    """The distance at which each pair meets.

    Example:
        >>> from posenc import ReRoPE
        >>> remapped_distance(ReRoPE(window=2), torch.tensor([4]), torch.arange(5))
        tensor([[2, 2, 2, 1, 0]])
    """
    distance = pair_differences(q_positions, k_positions)
    for move in of.moves(q_positions, k_positions):
        distance = torch.where(move.where, pair_differences(move.queries, move.keys), distance)
    return distance
