"""Pairs of a query and a key that meet at another distance: Self-Extend and its like."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.shapes import Distances, WholeKeyRow, WholeQueryRow
from posenc.positions import checked, pair_distances
from posenc.positions.distances import around


@dataclass(frozen=True)
class RemappedPairs:
    """Some pairs of a query and a key, and where their tokens are taken to stand."""

    queries: Int64[Tensor, "..."]
    keys: Int64[Tensor, "..."]
    where: Bool[Tensor, "..."]


Queries = Int64[Tensor, "*batch q_len"]
Keys = Int64[Tensor, "*batch k_len"]
Groups = tuple[RemappedPairs, ...]


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
    def remapped_pairs(self, q_positions: Queries, k_positions: Keys) -> Groups:
        """The pairs that stand elsewhere, in groups that do not overlap."""

    def distance(self, q_positions: WholeQueryRow, k_positions: WholeKeyRow) -> Distances:
        """The distance at which each pair meets, rounded down to whole positions."""
        queries, keys = checked(q_positions, "q_positions"), checked(k_positions, "k_positions")
        distance = pair_distances(queries, keys)
        for pairs in self.remapped_pairs(queries, keys):
            there = pair_distances(pairs.queries, pairs.keys) // self.parts
            distance = torch.where(pairs.where, there, distance)
        return distance


@dataclass(frozen=True)
class SelfExtend(PairRemapping):
    """Distances from a window on are counted in groups, so that they stay as short as in training.

    distance(p, n) = p − n where p − n < w,
    distance(p, n) = ⌊p / g⌋ + w − ⌊w / g⌋ − ⌊n / g⌋ from there on

    ``RemappedRotary`` puts it into attention with rotary positions. The authors' files for Mistral,
    Phi and Qwen have ⌊w / g⌋, as the paper's listing, those for Llama and Gemma the fraction w / g.

    Args:
        group: g, positions to a group; 8 in the authors' code.
        window: w, how many distances stay as they are; 1024 in the authors' code.
        floored: Whether w / g is rounded down.

    Reference:
        Jin et al. 2024, "LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning",
        algorithm 1 (arXiv:2401.01325).

    Example:
        >>> SelfExtend(group=2, window=4).distance([9], range(10))
        tensor([[6, 6, 5, 5, 4, 4, 3, 2, 1, 0]])
    """

    group: int = 8
    window: int = 1024
    floored: bool = True

    def __post_init__(self):
        check_whole(group=self.group, window=self.window)

    @property
    def parts(self) -> int:
        """Distances beyond the window are whole, or multiples of 1/group."""
        return 1 if self.floored else self.group

    def remapped_pairs(self, q_positions: Queries, k_positions: Keys) -> Groups:
        """Far pairs: both positions divided by the group, the queries further on."""
        far = pair_distances(q_positions, k_positions) >= self.window
        queries, keys = q_positions // self.group, k_positions // self.group
        if self.floored:
            return (RemappedPairs(queries + self.window - self.window // self.group, keys, far),)
        ahead = self.window * self.group - self.window
        return (RemappedPairs(queries * self.group + ahead, keys * self.group, far),)


@dataclass(frozen=True)
class ReRoPE(PairRemapping):
    """Distances are cut off at a window, or grow beyond it by 1/``leak`` a token.

    distance(p, n) = p − n where p − n < w,  and  w + (p − n − w) / leak from there on

    ``RemappedRotary`` puts it into attention with rotary positions. The author's code multiplies
    queries by max(1, ln(p + 1) / ln(L)) besides, as ``Temperature`` behind it does.

    Args:
        window: w, the longest distance that is true; 512 in the author's code.
        leak: How many tokens beyond the window count as one: 16 in the author's code of leaky
            ReRoPE. None cuts off.

    Reference:
        Su 2023, "Rectified Rotary Position Embeddings" (github.com/bojone/rerope), with both forms.

    Example:
        >>> ReRoPE(window=4).distance([9], range(10))
        tensor([[4, 4, 4, 4, 4, 4, 3, 2, 1, 0]])
    """

    is_relative: ClassVar[bool] = True

    window: int = 512
    leak: int | None = None

    def __post_init__(self):
        check_whole(window=self.window)
        if self.leak is not None:
            check_whole(leak=self.leak)

    @property
    def parts(self) -> int:
        """Distances beyond the window are multiples of 1/leak."""
        return self.leak or 1

    def remapped_pairs(self, q_positions: Queries, k_positions: Keys) -> Groups:
        """Far pairs: every query at the window and every key at 0, or both in steps of 1/leak."""
        far = pair_distances(q_positions, k_positions) >= self.window
        if self.leak is None:
            return (RemappedPairs(q_positions * 0 + self.window, k_positions * 0, far),)
        ahead = self.window * (self.leak - 1)
        return (RemappedPairs(q_positions + ahead, k_positions, far),)


@dataclass(frozen=True)
class DualChunk(PairRemapping):
    """Keys count from the beginning of their chunk; queries stand where the chunk of a key asks.

    With s = c − l, p′ = p mod s and n′ = n mod s:
    distance(p, n) = p − n                 in the same chunk of s tokens,
    distance(p, n) = min(p′ + s, c) − n′   for n in the chunk before,
    distance(p, n) = min(2s − 1, c) − n′   for n in an earlier one

    ``RemappedRotary`` puts it into attention with rotary positions. The authors' code for Llama has
    ``Temperature(heads, scale=m**2)`` behind it too, m = 0.05 · ln(L′ / L) + 1, for L′ tokens
    beyond the trained length L; the paper has not.

    Args:
        chunk: c; three quarters of the trained length in the authors' code.
        local: l, the local window; of the trained length an eighth in the authors' code for Llama
            and Mistral, a sixteenth in that for Qwen and for decoding.

    Reference:
        An et al. 2024, "Training-Free Long-Context Scaling of Large Language Models"
        (arXiv:2402.17463); the two cut-offs at c as in the authors' code.

    Example:
        >>> DualChunk(chunk=5, local=1).distance([9], range(10))
        tensor([[5, 4, 3, 2, 5, 4, 3, 2, 1, 0]])
    """

    chunk: int = 3072
    local: int = 256

    def __post_init__(self):
        check_whole(local=self.local)
        check_whole(self.local + 1, chunk=self.chunk)

    def remapped_pairs(self, q_positions: Queries, k_positions: Keys) -> Groups:
        """Pairs in neighboring chunks, and those further apart."""
        step = self.chunk - self.local
        queries, keys = q_positions % step, k_positions % step
        chunks = pair_distances(q_positions // step, k_positions // step)
        next_to = (queries + step).clamp(max=self.chunk)
        beyond = queries * 0 + min(2 * step - 1, self.chunk)
        return (RemappedPairs(next_to, keys, chunks == 1), RemappedPairs(beyond, keys, chunks > 1))


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

    def remapped_pairs(self, q_positions: Queries, k_positions: Keys) -> Groups:
        """Pairs that meet within one turn, one ahead and one behind, unless they do already."""
        distance = pair_distances(q_positions, k_positions)
        there = around(distance, self.period)
        queries, keys = q_positions % self.period, k_positions % self.period
        within = pair_distances(queries, keys)
        return tuple(
            RemappedPairs(queries + turn, keys, (there == within + turn) & (there != distance))
            for turn in (0, self.period, -self.period)
        )
