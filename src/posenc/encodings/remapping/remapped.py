"""Where the tokens of a pair are taken to stand, where that depends on the pair."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.positions import Integers, checked, pair_distances


@dataclass(frozen=True)
class RemappedPairs:
    """Some pairs of a query and a key, and where the tokens of these are taken to stand.

    Attributes:
        queries: ``[*batch, q_len]``, in the steps of the remapping.
        keys: ``[*batch, k_len]``, likewise.
        where: ``[*batch, q_len, k_len]``, true for these pairs.
    """

    queries: Int64[Tensor, "..."]
    keys: Int64[Tensor, "..."]
    where: Bool[Tensor, "..."]


@runtime_checkable
class PairRemapping(Protocol):
    """A change of position for some pairs of a query and a key; the others stay where they are.

    Attributes:
        is_relative: Claim: a shift of all positions changes no distance.
        parts: How many steps make one position: more than 1 where tokens are taken to stand
            between whole positions.
    """

    is_relative: ClassVar[bool]

    @property
    def parts(self) -> int:
        """Steps to a position."""
        ...

    def remapped_pairs(self, q_positions: Tensor, k_positions: Tensor) -> tuple[RemappedPairs, ...]:
        """The pairs that stand elsewhere, in groups that do not overlap."""
        ...


def remapped_distance(
    remapping: PairRemapping,
    q_positions: Int64[Tensor, "*batch q_len"] | Integers,
    k_positions: Int64[Tensor, "*batch k_len"] | Integers,
) -> Int64[Tensor, "*batch q_len k_len"]:
    """The distance at which each pair meets, rounded down to whole positions.

    Raises:
        TypeError: Positions are not integers.
        ValueError: One is beyond 2^56.

    Example:
        >>> from posenc import ReRoPE
        >>> remapped_distance(ReRoPE(window=2), [4], range(5))
        tensor([[2, 2, 2, 1, 0]])
    """
    queries = checked(q_positions, "q_positions")
    keys = checked(k_positions, "k_positions")
    distance = pair_distances(queries, keys)
    for pairs in remapping.remapped_pairs(queries, keys):
        there = pair_distances(pairs.queries, pairs.keys) // remapping.parts
        distance = torch.where(pairs.where, there, distance)
    return distance
