"""Dropout of hidden states that falls on the same elements however rows are cut."""

import torch
from torch import Tensor

from posenc.kernels.philox import Dropping, philox

USES = 3  # in a block: after attention, within the feed-forward layer, and after it


class HiddenDropout:
    """Which elements are dropped, by their feature, place in the row, row and use alone.

    The words are those of Philox, whose counter is (feature / 4, place, row of the batch, use).
    """

    def __init__(self, rows: Tensor, key: Tensor, first: int = 0):
        self.rows, self.key, self.first = rows, key, first

    def of_block(self, index: int) -> "HiddenDropout":
        """The dropout of one block, with random numbers of its own."""
        return HiddenDropout(self.rows, self.key, 1 + USES * index)

    def __call__(self, x: Tensor, probability: float, use: int = 0) -> Tensor:
        """``x`` ``[batch, n, width]`` with elements dropped, and the others scaled up."""
        if not probability:
            return x
        if probability >= 1:
            return x * 0.0
        dropping = Dropping(probability, 0)
        kept = self._words(x, self.first + use) >= dropping.threshold
        return torch.where(kept, x * dropping.rescale, 0.0)

    def _words(self, x: Tensor, use: int) -> Tensor:
        batch, n, width = x.shape
        blocks = -(-width // 4)
        shape = (batch, n, blocks)
        features = torch.arange(blocks, device=x.device).expand(shape)
        places = self.rows.unsqueeze(-1).expand(shape)
        numbers = torch.arange(batch, device=x.device).view(-1, 1, 1).expand(shape)
        counters = torch.stack((features, places, numbers, torch.full_like(numbers, use)))
        return philox(counters, self.key).movedim(0, -1).flatten(-2)[..., :width]
