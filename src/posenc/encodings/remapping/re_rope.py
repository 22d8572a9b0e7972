"""Rectified rotary: no distance is longer than a window."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.remapping.drawing import checked_most
from posenc.encodings.remapping.remapped import Remapped, pair_differences, remapped_distance


@dataclass(frozen=True)
class ReRoPE:
    """Distances are cut off at a window: all tokens beyond it seem equally far.

    distance(p, n) = min(p − n, w)

    ``RemappedRotary`` puts it into attention with rotary positions. The author's code multiplies
    queries by max(1, ln(p + 1) / ln(L)) besides, as ``Temperature`` behind it does.

    Args:
        window: w, the longest distance; 512 in the author's code.

    Raises:
        ValueError: ``window`` is not positive.

    Reference:
        Su 2023, "Rectified Rotary Position Embeddings" (github.com/bojone/rerope).

    Example:
        >>> import torch
        >>> ReRoPE(window=4).distance(torch.tensor([9]), torch.arange(10))
        tensor([[4, 4, 4, 4, 4, 4, 3, 2, 1, 0]])
    """

    is_relative: ClassVar[bool] = True

    window: int = 512

    def __post_init__(self):
        checked_most(self.window, "window", 1)

    def moves(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[Remapped, ...]:
        """Far pairs: every query at the window, every key at 0."""
        far = pair_differences(q_positions, k_positions) >= self.window
        return (Remapped(q_positions * 0 + self.window, k_positions * 0, far),)

    def distance(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """The distance at which each pair meets."""
        return remapped_distance(self, q_positions, k_positions)
