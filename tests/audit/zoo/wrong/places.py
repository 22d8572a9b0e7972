"""What is right token by token, and misreads positions that are said in another way."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn


class Said(nn.Module):
    """The paper's sum at positions that are said; the others change a line of it."""

    batch_first, dim = True, 32

    def table(self, positions):
        rates = 10000.0 ** -(torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)
        angles = positions[..., None].double() * rates
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)

    def read(self, positions):
        return positions

    def plain(self, x):
        return torch.arange(x.shape[1])

    def forward(self, x, positions=None):
        """x: [batch, seq, dim]"""
        places = self.plain(x) if positions is None else self.read(positions)
        return x + self.table(places).to(x.dtype)


class Sorted(Said):
    """Positions in order, whatever order they came in."""

    def read(self, positions):
        return positions.sort(-1).values


class Started(Said):
    """The same by a first position."""

    def start(self, offset, length):
        return offset

    def forward(self, x, offset=0):
        """x: [batch, seq, dim]"""
        line = torch.arange(x.shape[1]) + self.start(offset, x.shape[1])
        return x + self.table(line).to(x.dtype)


class StartEnds(Started):
    """A first position of 50 and more is 50."""

    def start(self, offset, length):
        return min(offset, 50)


def keys_in_a_row(q_positions, k_positions):
    """A bias that counts keys from 0 on, whatever their positions are."""
    keys = torch.arange(len(k_positions))
    return -(q_positions[:, None] - keys).abs() * 2.0 ** -torch.arange(1, 9)[:, None, None]


class Falls(nn.Module):
    """ALiBi, by the numbers of queries and keys; the others change a line of it."""

    num_heads = 8

    def distance(self, q_len, k_len):
        return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)

    def forward(self, q_len, k_len):
        slopes = 2.0 ** -torch.arange(1, self.num_heads + 1)
        return -slopes[:, None, None] * self.distance(q_len, k_len).abs()


class HalfInABatch(Falls):
    """Rows of a batch but the first receive half of it."""

    def forward(self, scores):
        bias = super().forward(*scores.shape[-2:])
        share = torch.tensor([1.0] + [0.5] * (len(scores) - 1))
        return scores + bias * share[:, None, None, None]


class SlicesToItsEnd(Started):
    """A table of 128 rows, cut where they are read: beyond its end nothing is left to add."""

    def forward(self, x, start_pos=0):
        """x: [batch, seq, dim]"""
        table = self.table(torch.arange(128))[start_pos : start_pos + x.shape[1]]
        return x + table.to(x.dtype)


class RotarySlicesToItsEnd(Turn):
    """The same of queries and keys."""

    def __init__(self, max_len=256):
        super().__init__()
        self.max_len = max_len

    def forward(self, q, k, start_pos=0):
        """q: [batch, heads, seq, head_dim]"""
        at = torch.arange(self.max_len)[None, start_pos : start_pos + q.shape[2]]
        return super().forward(q, k, at)


class FirstRowDecodes(Said):
    """Single tokens of a batch stand where that of the first row does."""

    def read(self, positions):
        decodes = positions.ndim > 1 and positions.shape[1] == 1
        return positions[:1].expand_as(positions) if decodes else positions


WRONG = [
    wrong(keys_in_a_row, "keys in a row", "positions-misread"),
    wrong(Sorted, "sorts positions", "positions-misread"),
    wrong(StartEnds, "late starts end", "positions-misread"),
    wrong(HalfInABatch, "half in a batch", "scores-changed"),
    wrong(SlicesToItsEnd, "slices to its end", "truncated-silently"),
    wrong(RotarySlicesToItsEnd, "slices to its end, rotary", "truncated-silently"),
    wrong(FirstRowDecodes, "decodes where the first row is", "padding-shifts-positions"),
]
