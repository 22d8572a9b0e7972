"""Where the tokens of a pair are taken to stand, where that depends on the pair."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.encodings.shapes import Distances, WholeKeyRow, WholeQueryRow
from posenc.positions import checked, pair_distances


@dataclass(frozen=True)
class RemappedPairs:
    """Some pairs of a query and a key, and where their tokens are taken to stand."""

    queries: Int64[Tensor, "..."]
    keys: Int64[Tensor, "..."]
    where: Bool[Tensor, "..."]


class PairRemapping(ABC):
    """A change of position for some pairs of a query and a key; the others stay where they are.

    Attributes:
        is_relative: Claim: a shift of all positions changes no distance.
    """

    is_relative: ClassVar[bool] = False

    @property
    def parts(self) -> int:
        """Steps to a position: more than 1 where tokens may stand between whole positions."""
        return 1

    @abstractmethod
    def remapped_pairs(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[RemappedPairs, ...]:
        """The pairs that stand elsewhere, in groups that do not overlap."""

    def distance(self, q_positions: WholeQueryRow, k_positions: WholeKeyRow) -> Distances:
        """The distance at which each pair meets, rounded down to whole positions."""
        queries, keys = checked(q_positions, "q_positions"), checked(k_positions, "k_positions")
        distance = pair_distances(queries, keys)
        for pairs in self.remapped_pairs(queries, keys):
            there = pair_distances(pairs.queries, pairs.keys) // self.parts
            distance = torch.where(pairs.where, there, distance)
        return distance
