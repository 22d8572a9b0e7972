"""Shifted absolute positions: each row begins at a random place."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.remapping.drawing import checked_most, uniform
from posenc.positions import checked, consecutive


@dataclass(frozen=True)
class SHAPE:
    """p → p + k,  k ~ U{0 … most}

    An absolute encoding learns so to rely on differences alone. One shift is drawn for each row of
    ``positions``, as of a batch; ``[seq]`` draws one for all. Queries and keys of one row need one
    shift, so apply it once and hand the result to both.

    Args:
        most: K, the largest shift.

    Raises:
        ValueError: ``most`` is negative.

    Reference:
        Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers"
        (arXiv:2109.05644).

    Example:
        >>> from posenc import positions
        >>> SHAPE(500)(positions.consecutive(4), generator=torch.Generator().manual_seed(0)).diff()
        tensor([1, 1, 1])
    """

    most: int

    def __post_init__(self):
        checked_most(self.most, "most", 0)

    def __call__(
        self, positions: Int64[Tensor, "*batch seq"], *, generator: torch.Generator
    ) -> Int64[Tensor, "*batch seq"]:
        """The shifted positions.

        Raises:
            TypeError: Positions are not integers.
        """
        positions = checked(positions)
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        return positions + uniform(rows + self.most, generator)
