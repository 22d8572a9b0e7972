"""Shifted absolute positions: each row begins at a random place."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import PositionRemapping
from posenc.encodings.remapping.drawing import uniform
from posenc.encodings.shapes import WholeRow
from posenc.positions import checked, consecutive


@dataclass(frozen=True)
class SHAPE(PositionRemapping):
    """p → p + k,  k ~ U{0 … most}, in training only

    One shift is drawn for each row of ``positions``; ``[seq]`` draws one for all. Hand one result
    to queries and keys of a row. The paper's shift reaches K, as here; the code draws from 0 … K −
    1, which is ``SHAPE(K - 1)``, and begins every row at K in evaluation.

    Args:
        most: K, the largest shift.

    Reference:
        Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers",
        section 3 (arXiv:2109.05644); ``onmt/modules/embeddings.py`` of butsugiri/shape.

    Example:
        >>> from posenc.positions import consecutive
        >>> SHAPE(500)(consecutive(4)).diff()
        tensor([1, 1, 1])
    """

    training_only: ClassVar[bool] = True

    most: int

    def __post_init__(self):
        check_whole(0, most=self.most)

    def __call__(
        self, positions: WholeRow, *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*batch seq"]:
        positions = checked(positions)
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        return positions + uniform(rows + self.most, generator)
