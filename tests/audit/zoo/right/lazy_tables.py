"""The style of nanochat: tables as long as the content of a call, heads after the sequence, and a
rotation by −p."""

import torch
from torch import nn


class LazyTables(nn.Module):
    """Cosines and sines ``[1, seq, 1, pairs]``, kept from the last call of this length."""

    def __init__(self, dim=32, base=10_000):
        super().__init__()
        self.inv_freq = (1 / base) ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
        self.length = 0

    def forward(self, x):
        if x.shape[1] != self.length:
            self.length = x.shape[1]
            angles = torch.outer(torch.arange(self.length).float(), self.inv_freq)
            self.cos, self.sin = angles.cos(), angles.sin()
        return self.cos[None, :, None], self.sin[None, :, None]


def apply_rotary_emb(x, cos, sin):
    first, second = x.chunk(2, dim=3)
    turned = torch.cat((first * cos + second * sin, second * cos - first * sin), 3)
    return turned.type_as(x)
