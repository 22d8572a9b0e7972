"""Rotary encodings of tokens on a grid, in the styles of public vision models."""

import math

import torch
from tests.audit.zoo.right.rotary import rotate_half
from tests.audit.zoo.specimen import right
from torch import nn


class RoPE2D(nn.Module):
    """CroCo and DUSt3R: one tensor, positions [batch, tokens, 2], half of the channels an axis."""

    def __init__(self, freq=100.0):
        super().__init__()
        self.base = freq

    def turned(self, tokens, line):
        width = tokens.shape[-1]
        rates = 1.0 / self.base ** (torch.arange(0, width, 2).float() / width)
        angles = line[:, None, :, None].float() * rates
        angles = torch.cat((angles, angles), -1)
        return tokens * angles.cos() + rotate_half(tokens) * angles.sin()

    def forward(self, tokens, positions):
        assert positions.ndim == 3
        assert positions.shape[-1] == 2
        y, x = tokens.chunk(2, dim=-1)
        return torch.cat((self.turned(y, positions[..., 0]), self.turned(x, positions[..., 1])), -1)


class VisionRotary(nn.Module):
    """EVA: a table of all patches of a square image, neighbors paired."""

    def __init__(self, dim=32, pt_seq_len=16, theta=10000.0):
        super().__init__()
        rates = 1.0 / theta ** (torch.arange(0, dim // 2, 2).float() / (dim // 2))
        line = (torch.arange(pt_seq_len).float()[:, None] * rates).repeat_interleave(2, -1)
        rows = line[:, None].expand(-1, pt_seq_len, -1)
        columns = line[None].expand(pt_seq_len, -1, -1)
        angles = torch.cat((rows, columns), -1).flatten(0, 1)
        self.register_buffer("freqs_cos", angles.cos())
        self.register_buffer("freqs_sin", angles.sin())

    def forward(self, t):
        turned = torch.stack((-t[..., 1::2], t[..., ::2]), -1).flatten(-2)
        return t * self.freqs_cos + turned * self.freqs_sin


def rotate_on_grid(q, k, positions):
    """Pairs in turn of rows and of columns, positions [tokens, 2]."""
    rows, columns = positions[:, :1].float(), positions[:, 1:].float()
    rates = 1.0 / 10000.0 ** (torch.arange(0, q.shape[-1], 4).float() / q.shape[-1])
    angles = torch.stack((rows * rates, columns * rates), -1).flatten(-2)
    cos, sin = angles.cos(), angles.sin()

    def turned(x):
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)

    return turned(q), turned(k)


def rotate_in_unit_square(q, k, positions):
    """DINOv3: coordinates between −1 and 1, here of 16 patches a side, times 2π."""
    width = q.shape[-1]
    periods = 100.0 ** (2 * torch.arange(width // 4) / (width // 2))
    angles = 2 * math.pi * positions.float()[:, :, None] / 8 / periods
    angles = angles.flatten(1, 2).tile(2)
    cos, sin = angles.cos(), angles.sin()
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rotate_by_lines(q, k, positions):
    """Frequencies in equal steps, as of images' own sizes (rotary-embedding-torch's "pixel")."""
    rates = torch.linspace(1.0, 5.0, q.shape[-1] // 4) * math.pi / 32
    angles = (positions.float()[:, :, None] * rates).flatten(1, 2).tile(2)
    cos, sin = angles.cos(), angles.sin()
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


RIGHT = [
    right(RoPE2D, "rows turn 32 of 64 channels, half pairing, base 100"),
    right(VisionRotary, "columns turn 16 of 32 channels, interleaved pairing, base 10,000"),
    right(rotate_in_unit_square, "half pairing, base 100, 0.7854 radians a step"),
    right(rotate_by_lines, "rows turn 32 of 64 channels, half pairing"),
    right(rotate_on_grid, "rows turn 32 of 64 channels, interleaved pairing, base 10,000"),
]
