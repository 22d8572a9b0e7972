"""Rotary encodings of tokens on a grid, in the styles of public vision models."""

import math

import torch
from tests.audit.zoo.arithmetic import halves, neighbors, powers, waves
from tests.audit.zoo.right.rotary import rotate_half
from tests.audit.zoo.specimen import right
from torch import nn


class RoPE2D(nn.Module):
    """CroCo and DUSt3R: one tensor, positions [batch, tokens, 2], half of the channels an axis."""

    def __init__(self, freq=100.0):
        super().__init__()
        self.base = freq

    def forward(self, tokens, positions):
        assert positions.ndim == 3
        assert positions.shape[-1] == 2
        parts = zip(tokens.chunk(2, dim=-1), positions[:, None].unbind(-1), strict=True)
        return torch.cat([halves(x, *waves(p, x.shape[-1], self.base)) for x, p in parts], -1)


def rotate_by_lines(q, k, positions):
    """Frequencies in equal steps, as of images' own sizes (rotary-embedding-torch's "pixel")."""
    rates = torch.linspace(1.0, 5.0, q.shape[-1] // 4) * math.pi / 32
    angles = (positions.float()[:, :, None] * rates).flatten(1, 2).tile(2)
    cos, sin = angles.cos(), angles.sin()
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class TableOfPoints(nn.Module):
    """Angles looked up by row and column, or by the number of the point, row after row."""

    def __init__(self, height=12, width=16, by_number=False):
        super().__init__()
        self.width, self.by_number = width, by_number
        points = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
        angles = (points[..., None] * powers(16)).view(height, width, -1)
        self.register_buffer("angles", angles, persistent=False)

    def at(self, positions):
        row, column = positions[..., 0], positions[..., 1]
        if self.by_number:
            return self.angles.flatten(0, 1)[row * self.width + column]
        return self.angles[row, column]

    def forward(self, q, k, positions):
        angles = self.at(positions).unsqueeze(-3)
        return neighbors(q, angles.cos(), angles.sin()), neighbors(k, angles.cos(), angles.sin())


class Video(nn.Module):
    """Qwen3-VL: positions [3, batch, seq], pairs dealt out to time, rows and columns in turn."""

    head_dim = 48

    def __init__(self, axes=(0, 1, 2) * 8, last=False):
        super().__init__()
        self.axes, self.last = torch.tensor(axes), last

    def forward(self, q, k, position_ids):
        points = position_ids if self.last else position_ids.movedim(0, -1)
        assert points.shape[-1] == 3
        angles = (points[..., self.axes].float() * powers(48))[:, None]
        return halves(q, angles.cos(), angles.sin()), halves(k, angles.cos(), angles.sin())


def video_by_token():
    """The same with positions [batch, seq, 3]."""
    return Video(last=True)


RIGHT = [
    right(Video, ""),
    right(video_by_token, ""),
    right(RoPE2D, "rows turn 32 of 64 channels, half pairing, base 100"),
    right(rotate_by_lines, "rows turn 32 of 64 channels, half pairing"),
    right(TableOfPoints, "base 10,000: equal to posenc.Rotary(Geometric(16), pairing='interl"),
]
