"""Randomized positions: each row trains on a sorted sample of a much longer range."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.encodings.remapping.drawing import checked_most, checked_row


@dataclass(frozen=True)
class Randomized:
    """The p-th token stands at the p-th smallest of a sample from 0 … longest − 1.

    The sample is uniform and without replacement, so order is kept and any position that a longer
    text will need is met in training. It pairs with any encoding. One sample is drawn for each row
    of ``positions``, as of a batch; ``[seq]`` draws one for all.

    Args:
        longest: L, the number of positions to draw from; larger than any length to come.

    Raises:
        ValueError: ``longest`` is not positive, or a row has more tokens.

    Reference:
        Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of
        Transformers", section 3 (arXiv:2305.16843).

    Example:
        >>> from posenc import positions
        >>> seeded = torch.Generator().manual_seed(0)
        >>> drawn = Randomized(2048)(positions.consecutive(6), generator=seeded)
        >>> bool((drawn.diff() > 0).all()), bool((drawn < 2048).all())
        (True, True)
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
        positions = checked_row(positions, self.longest, name="Randomized")
        shuffled = torch.rand(
            *positions.shape[:-1],
            self.longest,
            generator=generator,
            device=generator.device,
            dtype=torch.float64,  # in float32 equal numbers would favor the first of them
        ).argsort(-1)
        sample = shuffled[..., : positions.shape[-1]].sort(-1).values.to(positions.device)
        return sample.gather(-1, positions)
