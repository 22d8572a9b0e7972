"""What is right of rows without a padding mask, and of some rows with one."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import sines
from torch import nn


class Masked(nn.Module):
    """The paper's sum, counted by the tokens that are none of padding."""

    batch_first = True

    def counted(self, mask):
        return (mask.cumsum(1) - 1).clamp(min=0)

    def beside(self, x, mask):
        return 0.0

    def forward(self, x, attention_mask=None):
        table = sines(x.shape[1] + 8, x.shape[2]).to(x.dtype)
        if attention_mask is None:
            return x + table[: x.shape[1]]
        return x + table[self.counted(attention_mask)] + self.beside(x, attention_mask)


class FromTheEnd(Masked):
    """Padding after a row is counted as if it stood before it."""

    def counted(self, mask):
        return (torch.arange(mask.shape[1]) - (mask == 0).sum(1, keepdim=True)).clamp(min=0)


class OneMore(Masked):
    """Rows with a mask begin at 1, and rows without at 0."""

    def counted(self, mask):
        return mask.cumsum(1)


class OfContent(Masked):
    """What stands on padding reaches the tokens beside it."""

    def beside(self, x, mask):
        padding = (mask == 0)[..., None]
        return (x * padding).sum(1, keepdim=True)


WRONG = [
    wrong(FromTheEnd, "right padding counts", "padding-shifts-positions"),
    wrong(OneMore, "a mask begins at 1", "padding-shifts-positions"),
    wrong(OfContent, "content of padding reaches tokens", "padding-shifts-positions"),
]
