"""Positional skip-wise training: two chunks of a short row, with a gap between them."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.remapping.drawing import checked_most, checked_row, uniform
from posenc.positions import consecutive


@dataclass(frozen=True)
class PoSE:
    """Tokens from a random cut on stand further out by a random skip.

    p → p + skip · [p ≥ cut],  cut ~ U{1 … ⌈seq / 2⌉},  skip ~ U{0 … longest − seq}

    A row of the trained length so meets every distance of a longer one. These are the two chunks of
    the authors' code, where the first chunk stays at 0. There the second chunk's text may come from
    further on in the document, too, which is the reader's choice of tokens. One cut and one skip
    are drawn for each row of ``positions``; ``[seq]`` draws them for all.

    Args:
        longest: The number of positions of the context to be reached.

    Raises:
        ValueError: ``longest`` is not positive, or a row has more tokens.

    Reference:
        Zhu et al. 2023, "PoSE: Efficient Context Window Extension of LLMs via Positional Skip-wise
        Training" (arXiv:2309.10400).

    Example:
        >>> from posenc import positions
        >>> seeded = torch.Generator().manual_seed(0)
        >>> PoSE(100)(positions.consecutive(6), generator=seeded).diff() >= 1
        tensor([True, True, True, True, True])
    """

    longest: int

    def __post_init__(self):
        checked_most(self.longest, "longest", 1)

    def __call__(
        self, positions: Int64[Tensor, "*batch seq"], *, generator: torch.Generator
    ) -> Int64[Tensor, "*batch seq"]:
        """New positions for tokens at 0 … seq − 1; equal ones (padding) stay equal.

        Raises:
            TypeError: Positions are not integers.
            ValueError: A position is negative or not less than the length of the row.
        """
        positions = checked_row(positions, self.longest, name="PoSE")
        seq = positions.shape[-1]
        rows = consecutive(1, device=positions.device).expand(*positions.shape[:-1], 1)
        cut = 1 + uniform(rows + max((seq + 1) // 2 - 1, 0), generator)
        skip = uniform(rows + self.longest - seq, generator)
        return positions + skip * (positions >= cut)
