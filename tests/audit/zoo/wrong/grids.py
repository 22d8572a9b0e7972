"""Rotary encodings of a grid that lose an axis, or mix them."""

import torch
from tests.audit.zoo.specimen import wrong
from torch import nn


def turned(x, angles):
    angles = torch.cat((angles, angles), -1)
    a, b = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-b, a), -1) * angles.sin()


def rates(width):
    return 1.0 / 100.0 ** (torch.arange(0, width, 2).float() / width)


def by_axes(x, first, second):
    """The first half of the channels by one coordinate, the last by the other."""
    one, other = x.chunk(2, -1)
    each = rates(one.shape[-1])
    return torch.cat(
        (
            turned(one, first[..., None].float() * each),
            turned(other, second[..., None].float() * each),
        ),
        -1,
    )


def axes_swapped(q, k, positions):
    """Keys take columns for rows."""
    y, x = positions[:, 0], positions[:, 1]
    return by_axes(q, y, x), by_axes(k, x, y)


def one_axis(q, k, positions):
    """Both halves turn by the row."""
    y = positions[:, 0]
    return by_axes(q, y, y), by_axes(k, y, y)


class OneAxis(nn.Module):
    """A table of a square image in which columns are rows again."""

    def __init__(self, dim=32, side=16):
        super().__init__()
        row = torch.arange(side * side) // side
        angles = row[:, None].float() * rates(dim // 2)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, x):
        a, b, c, d = x.chunk(4, -1)
        return x * self.cos + torch.cat((-b, a, -d, c), -1) * self.sin


def summed(q, k, positions):
    """All channels turn by row + column: the diagonals share their positions."""
    angles = positions.sum(-1)[:, None].float() * rates(q.shape[-1])
    return turned(q, angles), turned(k, angles)


WRONG = [
    wrong(axes_swapped, "axes of keys swapped", "axes-swapped"),
    wrong(one_axis, "one axis only", "one-axis-only"),
    wrong(OneAxis, "one axis only, in a table", "one-axis-only"),
    wrong(summed, "sum of the axes", "positions-shared"),
]
