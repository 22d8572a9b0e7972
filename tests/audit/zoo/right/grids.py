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


class Patches(nn.Module):
    """A table of the patches of a square image, row after row, neighbors paired.

    Args:
        side: Rows and columns.
        begin: Where rows and columns begin to count.
        step: Radians from one to the next.
        before: Whether a class token stands before the patches, which is not turned.
        behind: Whether it stands behind them.
        cut: Whether the table is cut to the tokens that come.
    """

    def __init__(self, side=16, begin=0.0, step=1.0, before=False, behind=False, cut=False):
        super().__init__()
        self.cut = cut
        angles = self.angles(*self.indices(side), begin, step)
        unturned = torch.zeros(1, 16)
        angles = torch.cat([unturned] * before + [angles] + [unturned] * behind)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def indices(self, side):
        number = torch.arange(side * side)
        return number // side, number % side

    def angles(self, row, column, begin, step):
        rates = step / 100.0 ** (torch.arange(8) / 8)
        row, column = ((each.float() + begin)[:, None] * rates for each in (row, column))
        return torch.cat((row, column), -1)

    def forward(self, x):
        cos, sin = self.cos, self.sin
        if self.cut:
            cos, sin = cos[: x.shape[-2]], sin[: x.shape[-2]]
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def patches_cut_to_what_comes():
    return Patches(cut=True)


def patches_of_24_rows():
    """So many that a line of them is longer than most short tables."""
    return Patches(side=24)


def patches_behind_a_class_token():
    return Patches(before=True)


def patches_before_a_class_token():
    return Patches(behind=True, cut=True)


class LeavesAClassToken(Patches):
    """A table of the patches alone: the class token before them, or behind, is not turned."""

    def __init__(self, side=14, last=False, **given):
        super().__init__(side, **given)
        self.last = last

    def forward(self, x):
        if self.last:
            return torch.cat((super().forward(x[..., :-1, :]), x[..., -1:, :]), -2)
        return torch.cat((x[..., :1, :], super().forward(x[..., 1:, :])), -2)


def patches_behind_an_unturned_token():
    return LeavesAClassToken(cut=True)


def patches_before_an_unturned_token():
    return LeavesAClassToken(last=True, cut=True)


def all_patches_behind_an_unturned_token():
    return LeavesAClassToken()


def patches_centered():
    """DINOv3: the middle of the image is turned by nothing, and its corner is."""
    return Patches(begin=-7.5, step=math.pi / 8)


def patches_counted_from_one():
    return Patches(begin=1.0)


def patches_between_0_and_1():
    """Fractions on purpose, of middles of patches: of both axes."""
    return Patches(side=14, begin=0.5, step=1 / 14)


class ByNumberToo(Patches):
    """A third of the channels goes by the number of the patch, beside its row and its column."""

    def angles(self, row, column, begin, step):
        rates = 100.0 ** (-torch.arange(8) / 8)
        row, column = row[:, None] * rates, column[:, None] * rates
        return torch.cat((row[:, :6], column[:, :6], (row + column / 16)[:, :4]), -1)


class TableOfPoints(nn.Module):
    """Angles looked up by row and column, or by the number of the point, row after row."""

    def __init__(self, height=12, width=16, by_number=False):
        super().__init__()
        self.width, self.by_number = width, by_number
        row, column = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        rates = 10_000.0 ** (-torch.arange(8) / 8)
        angles = torch.cat((row[..., None] * rates, column[..., None] * rates), -1)
        self.register_buffer("angles", angles, persistent=False)

    def at(self, positions):
        row, column = positions[..., 0], positions[..., 1]
        if self.by_number:
            return self.angles.flatten(0, 1)[row * self.width + column]
        return self.angles[row, column]

    def forward(self, q, k, positions):
        angles = self.at(positions)
        cos, sin = angles.cos().unsqueeze(-3), angles.sin().unsqueeze(-3)

        def turned(x):
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)

        return turned(q), turned(k)


def table_by_number():
    return TableOfPoints(by_number=True)


class WholeRow(nn.Module):
    """No grid: a table of 64 tokens on a line, all of which must come at once."""

    def __init__(self, count=64, dim=32):
        super().__init__()
        rates = 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(count).float(), rates)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * self.cos + turned * self.sin


class BothOfPatches(Patches):
    """Queries and keys of all patches, and of no fewer."""

    def forward(self, q, k):
        return super().forward(q), super().forward(k)


def both_of_14_rows():
    return BothOfPatches(side=14)


class BothWholeRows(WholeRow):
    """Queries and keys of 64 tokens on a line."""

    def forward(self, q, k):
        return super().forward(q), super().forward(k)


RIGHT = [
    right(RoPE2D, "rows turn 32 of 64 channels, half pairing, base 100"),
    right(VisionRotary, "columns turn 16 of 32 channels, interleaved pairing, base 10,000"),
    right(rotate_in_unit_square, "half pairing, base 100, 0.7854 radians a step"),
    right(rotate_by_lines, "rows turn 32 of 64 channels, half pairing"),
    right(patches_cut_to_what_comes, "rows turn 16 of 32 channels, interleaved pairing, base 100"),
    right(patches_of_24_rows, "to position 23"),
    right(patches_behind_a_class_token, "columns turn 16 of 32 channels"),
    right(patches_before_a_class_token, "columns turn 16 of 32 channels"),
    right(patches_behind_an_unturned_token, "rows turn 16 of 32 channels, interleaved pairing"),
    right(patches_before_an_unturned_token, "columns turn 16 of 32 channels"),
    right(all_patches_behind_an_unturned_token, "to position 13"),
    right(patches_centered, "interleaved pairing, base 100, 0.3927 radians a step"),
    right(patches_counted_from_one, "rows turn 16 of 32 channels, interleaved pairing, base 100"),
    right(
        patches_between_0_and_1,
        "rows turn 16 of 32 channels, interleaved pairing, base 100, linear",
    ),
    right(ByNumberToo, "rows turn 20 of 32 channels, interleaved pairing"),
    right(
        TableOfPoints, "base 10,000: equal to posenc.Rotary(Geometric(16), pairing='interleaved')"
    ),
    right(table_by_number, "columns turn 16 of 32 channels"),
    right(WholeRow, "a rotary encoding, half pairing, base 10,000"),
    right(both_of_14_rows, "rows turn 16 of 32 channels, interleaved pairing, base 100"),
    right(BothWholeRows, "a rotary encoding, half pairing, base 10,000"),
    right(rotate_on_grid, "rows turn 32 of 64 channels, interleaved pairing, base 10,000"),
]
