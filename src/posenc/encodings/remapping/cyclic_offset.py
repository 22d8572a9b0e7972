"""Cyclic offsets: the last token stands beside the first."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.remapping.remapped import PairRemapping, RemappedPairs
from posenc.numerics.ring import around
from posenc.positions import pair_distances


@dataclass(frozen=True)
class CyclicOffset(PairRemapping):
    """Distances go the shorter way around a ring.

    distance(p, n) = d − period · round(d / period),  d = p − n

    so the last of ``period`` tokens is at distance −1 from the first. ``RemappedRotary`` puts it
    into attention with rotary positions; for biases there is ``Cyclic``. At half of an even ring
    the distance keeps its sign.

    Reference:
        Rettie et al. 2023, "Cyclic peptide structure prediction and design using AlphaFold", whose
        code calls it a cyclic offset; Boltz-1 and 2, ``cyclic_period``: both in a bias of distance.

    Example:
        >>> CyclicOffset(period=6).distance([5], range(6))
        tensor([[-1, -2,  3,  2,  1,  0]])
    """

    is_relative: ClassVar[bool] = True

    period: int

    def __post_init__(self):
        check_whole(period=self.period)

    def remapped_pairs(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[RemappedPairs, ...]:
        """Pairs that meet within one turn, one ahead and one behind, unless they do already."""
        distance = pair_distances(q_positions, k_positions)
        there = around(distance, self.period)
        queries, keys = q_positions % self.period, k_positions % self.period
        within = pair_distances(queries, keys)
        return tuple(
            RemappedPairs(queries + turn, keys, (there == within + turn) & (there != distance))
            for turn in (0, self.period, -self.period)
        )
