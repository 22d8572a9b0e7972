"""Rectified rotary: no distance is longer than a window, or longer ones grow slowly."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.remapping.remapped import PairRemapping, RemappedPairs
from posenc.positions import pair_distances


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

    def remapped_pairs(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[RemappedPairs, ...]:
        """Far pairs: every query at the window and every key at 0, or both in steps of 1/leak."""
        far = pair_distances(q_positions, k_positions) >= self.window
        if self.leak is None:
            return (RemappedPairs(q_positions * 0 + self.window, k_positions * 0, far),)
        ahead = self.window * (self.leak - 1)
        return (RemappedPairs(q_positions + ahead, k_positions, far),)
