"""Randomized positions: each row trains on a sorted sample of a much longer range."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import PositionRemapping
from posenc.encodings.remapping.drawing import checked_row, share
from posenc.encodings.shapes import WholeDistance, WholeRow
from posenc.positions import checked


@dataclass(frozen=True)
class Randomized(PositionRemapping):
    """The p-th token stands at the p-th smallest of a sample from 0 … longest − 1.

    The sample is uniform and without replacement. It is drawn in evaluation too, as the authors do,
    so a text cannot be decoded step by step. One is drawn for each row of ``positions``; ``[seq]``
    draws one for all, as the authors' code does. For biases of distance see ``distances``.

    Args:
        longest: L, the number of positions to draw from; larger than any length to come.

    Reference:
        Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of
        Transformers", section 3 (arXiv:2305.16843); ``models/positional_encodings.py`` of
        google-deepmind/randomized_positional_encodings.

    Example:
        >>> from posenc.positions import consecutive
        >>> drawn = Randomized(2048)(consecutive(6), generator=torch.Generator().manual_seed(0))
        >>> bool((drawn.diff() > 0).all()), bool((drawn < 2048).all())
        (True, True)
    """

    training_only: ClassVar[bool] = False

    longest: int

    def __post_init__(self):
        check_whole(longest=self.longest)

    def __call__(
        self, positions: WholeRow, *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*batch seq"]:
        """New positions for tokens at 0 … seq − 1; equal ones (padding) stay equal."""
        positions = checked_row(positions, self.longest, name="Randomized")
        sample = self._sample(positions.shape, self.longest, positions.device, generator)
        return sample.gather(-1, positions)

    def distances(
        self, distance: WholeDistance, *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*shape"]:
        """Distance d > 0 → the d-th smallest of a sample from 1 … longest − 1; −d → its opposite.

        The authors' form for ALiBi and Transformer-XL: hand the profile of a bias at these
        distances to attention as its mask.

        Example:
            >>> from posenc import ALiBi
            >>> ALiBi(8).profile(Randomized(2048).distances(range(6))).shape
            torch.Size([8, 6])
        """
        distance = checked(distance, "distance")
        reach = int(distance.abs().amax()) if distance.numel() else 0
        if reach >= self.longest:
            raise ValueError(f"distance reaches {reach}; it must be below {self.longest}.")
        sample = self._sample(torch.Size((reach,)), self.longest - 1, distance.device, generator)
        sample = 1 + sample
        return torch.cat((-sample.flip(0), sample.new_zeros(1), sample))[distance + reach]

    @staticmethod
    def _sample(
        shape: torch.Size, below: int, device: torch.device, generator: torch.Generator | None
    ) -> Tensor:
        """A sorted sample of 0 … below − 1 without replacement for each row."""
        # In float32 equal keys would favor the first of them.
        keys = share(torch.Size((*shape[:-1], below)), device, generator)
        return keys.argsort(-1)[..., : shape[-1]].sort(-1).values.to(device)
