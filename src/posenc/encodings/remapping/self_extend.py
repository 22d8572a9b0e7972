"""Self-Extend: far tokens are counted in groups, near ones one by one."""

from dataclasses import dataclass

from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.remapping.remapped import PairRemapping, RemappedPairs
from posenc.positions import pair_distances


@dataclass(frozen=True)
class SelfExtend(PairRemapping):
    """Distances from a window on are counted in groups, so that they stay as short as in training.

    distance(p, n) = p − n where p − n < w,
    distance(p, n) = ⌊p / g⌋ + w − ⌊w / g⌋ − ⌊n / g⌋ from there on

    A model trained on L tokens reads about (L − w) · g + w of them. ``RemappedRotary`` puts it into
    attention with rotary positions. The authors' files for Mistral, Phi and Qwen have ⌊w / g⌋, as
    the paper's listing, those for Llama and Gemma the fraction w / g.

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

    def remapped_pairs(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[RemappedPairs, ...]:
        """Far pairs: both positions divided by the group, the queries further on."""
        far = pair_distances(q_positions, k_positions) >= self.window
        queries, keys = q_positions // self.group, k_positions // self.group
        if self.floored:
            return (RemappedPairs(queries + self.window - self.window // self.group, keys, far),)
        ahead = self.window * self.group - self.window
        return (RemappedPairs(queries * self.group + ahead, keys * self.group, far),)
