"""Positional skip-wise training: chunks of a short row, with gaps between them."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import PositionRemapping
from posenc.encodings.remapping.drawing import checked_row, share, uniform
from posenc.encodings.shapes import WholeRow
from posenc.positions import consecutive


@dataclass(frozen=True)
class PoSE(PositionRemapping):
    """Tokens from each of some random cuts on stand further out by a random skip, in training.

    p → p + u_i in chunk i,  u_0 = 0,  u_i ~ U{u_{i−1} … longest − seq}

    With two chunks the cut is that of the authors' code, U{1 … ⌈seq / 2⌉}; with more, which the
    code does not have, all divisions are equally likely. Cuts and skips are drawn for each row of
    ``positions``; ``[seq]`` draws them for all.

    Args:
        longest: The number of positions of the context to be reached.
        chunks: Number of chunks of a row; 2 in the paper's experiments.

    Reference:
        Zhu et al. 2023, "PoSE: Efficient Context Window Extension of LLMs via Positional Skip-wise
        Training", equations 3 and 4 (arXiv:2309.10400).

    Example:
        >>> from posenc.positions import consecutive
        >>> PoSE(100)(consecutive(6), generator=torch.Generator().manual_seed(0)).diff() >= 1
        tensor([True, True, True, True, True])
    """

    training_only: ClassVar[bool] = True

    longest: int
    chunks: int = 2

    def __post_init__(self):
        check_whole(longest=self.longest)
        check_whole(2, chunks=self.chunks)

    def __call__(
        self, positions: WholeRow, *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*batch seq"]:
        """New positions for tokens at 0 … seq − 1; equal ones (padding) stay equal."""
        positions = checked_row(positions, self.longest, name="PoSE")
        seq, skipped = positions.shape[-1], torch.zeros_like(positions)
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        room = rows + self.longest - seq
        for cut in self._cuts(rows, seq, generator).unbind(-1):
            skip = uniform(room, generator)
            skipped, room = skipped + skip * (positions >= cut.unsqueeze(-1)), room - skip
        return positions + skipped

    def _cuts(self, rows: Tensor, seq: int, generator: torch.Generator | None) -> Tensor:
        """The first token of each chunk but the first."""
        if self.chunks == 2:
            return 1 + uniform(rows + max((seq + 1) // 2 - 1, 0), generator)
        keys = share(torch.Size((*rows.shape[:-1], max(seq - 1, 0))), rows.device, generator)
        return 1 + keys.argsort(-1)[..., : self.chunks - 1].sort(-1).values.to(rows.device)
