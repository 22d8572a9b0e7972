"""What is right where it is called plainly: other arguments, rows and lengths show the slip."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import sines
from torch import nn


class EncodesTheBatch(nn.Module):
    """x: [seq, batch, dim]; encodes axis 1."""

    def forward(self, x):
        return x + sines(128, 64)[: x.shape[1]].to(x.dtype)


def slopes(heads):
    return torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])


def first_mask(attention_mask, num_heads, dtype):
    """BLOOM's bias, of the first row's padding in all."""
    rows, keys = attention_mask.shape
    line = ((attention_mask.cumsum(-1) - 1) * attention_mask)[:1, None, :].expand(rows, 1, keys)
    return (slopes(num_heads)[None, :, None] * line).reshape(rows * num_heads, 1, keys).to(dtype)


MISREAD, PADDING = "positions-misread", "padding-shifts-positions"
WRONG = [
    wrong(EncodesTheBatch, "encodes the batch", "batch-axis-encoded"),
    wrong(first_mask, "the first mask for all", PADDING, "bias-in-16-bits"),
]
