"""Self-Extend: far tokens are counted in groups, near ones one by one."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.remapping.drawing import checked_most
from posenc.encodings.remapping.remapped import Remapped, pair_differences, remapped_distance


@dataclass(frozen=True)
class SelfExtend:
    """Distances from a window on are counted in groups, so that they stay as short as in training.

    distance(p, n) = p − n where p − n < w,
    distance(p, n) = ⌊p / g⌋ + w − ⌊w / g⌋ − ⌊n / g⌋ from there on

    A model trained on L tokens reads about (L − w) · g + w of them, without further training.
    ``RemappedRotary`` puts it into attention with rotary positions.

    Args:
        group: g, positions to a group; 8 in the authors' code.
        window: w, how many distances stay as they are; 1024 in the authors' code.

    Raises:
        ValueError: A number is not positive.

    Reference:
        Jin et al. 2024, "LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning"
        (arXiv:2401.01325).

    Example:
        >>> import torch
        >>> SelfExtend(group=2, window=4).distance(torch.tensor([9]), torch.arange(10))
        tensor([[6, 6, 5, 5, 4, 4, 3, 2, 1, 0]])
    """

    is_relative: ClassVar[bool] = False

    group: int = 8
    window: int = 1024

    def __post_init__(self):
        checked_most(self.group, "group", 1)
        checked_most(self.window, "window", 1)

    def moves(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> tuple[Remapped, ...]:
        """Far pairs: both positions divided by the group, the queries moved on."""
        queries = q_positions // self.group + self.window - self.window // self.group
        far = pair_differences(q_positions, k_positions) >= self.window
        return (Remapped(queries, k_positions // self.group, far),)

    def distance(
        self, q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """The distance at which each pair meets."""
        return remapped_distance(self, q_positions, k_positions)
