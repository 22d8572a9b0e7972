"""Which rows of a stored tensor are rotated channels, and where each goes in the other pairing."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from posenc.numerics.pairing import Pairing, permutation


@dataclass(frozen=True)
class RowOrder:
    """The rows of one projection, bias or norm: heads side by side, some of them rotated.

    Attributes:
        width: Rows of a head.
        start: Where the rotated rows of a head begin.
        rotated: How many they are.
        pattern: For each head of a group, whether it is rotated; groups repeat. In a projection of
            queries, keys and values together, values are not.
        elementwise: Whether every number is a row, as in a norm that is kept ``[heads, width]``.
    """

    width: int
    start: int
    rotated: int
    pattern: tuple[bool, ...] = (True,)
    elementwise: bool = False

    def rows(self, shape: tuple[int, ...]) -> int:
        """The number of rows of a tensor of this shape.

        Raises:
            ValueError: They are no whole groups of heads.

        Example:
            >>> RowOrder(4, 0, 4).rows((8, 3))
            8
        """
        count = torch.Size(shape).numel() if self.elementwise else shape[0] if shape else 0
        if count == 0 or count % (self.width * len(self.pattern)):
            raise ValueError(
                f"a tensor of shape {list(shape)} has {count} rows, which are no whole groups of "
                f"{len(self.pattern)} × {self.width}. Give the configuration of these weights."
            )
        return count

    def index(self, rows: int, to: Pairing) -> Int64[Tensor, "rows"]:
        """For each row in the pairing ``to``, the row that it was in the other one.

        Example:
            >>> RowOrder(6, 2, 4, (True, False)).index(12, "interleaved").tolist()
            [0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11]
        """
        heads = torch.arange(rows).view(-1, len(self.pattern), self.width)
        channels = self.start + torch.tensor(permutation(self.rotated, to))
        chosen = torch.tensor(self.pattern)
        moved = heads[:, chosen]
        moved[..., self.start : self.start + self.rotated] = moved[..., channels]
        heads[:, chosen] = moved
        return heads.flatten()

    def converted(self, x: Shaped[Tensor, "..."], to: Pairing) -> Shaped[Tensor, "..."]:
        """``x`` with its rows in the pairing ``to``; no number is changed.

        Example:
            >>> RowOrder(4, 0, 4).converted(torch.arange(4), "interleaved")
            tensor([0, 2, 1, 3])
        """
        index = self.index(self.rows(tuple(x.shape)), to).to(x.device)
        if self.elementwise:
            return x.flatten()[index].view(x.shape)
        return x[index]

    def keeps_blocks(self, rows: int, blocks: int) -> bool:
        """Whether rows that change places share a block, as blocks of scales have it.

        Example:
            >>> RowOrder(192, 128, 64).keeps_blocks(384, 3), RowOrder(4, 0, 4).keeps_blocks(8, 4)
            (True, False)
        """
        size = -(-rows // blocks)
        starts = torch.arange(0, rows, self.width) + self.start
        starts = starts[torch.tensor(self.pattern).repeat(len(starts) // len(self.pattern))]
        return bool((starts // size == (starts + self.rotated - 1) // size).all())
