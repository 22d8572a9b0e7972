"""Rotary encodings of a grid that lose an axis, or mix them."""

import torch
from tests.audit.zoo.right.grids import (
    BothOfPatches,
    BothWholeRows,
    LeavesAClassToken,
    Patches,
    TableOfPoints,
)
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


class CountedIn16Bits(Patches):
    """Numbers of patches in bfloat16, as models are built in: 257 is 256."""

    def __init__(self):
        super().__init__(side=24)

    def indices(self, side):
        number = torch.arange(side * side, dtype=torch.bfloat16)
        return torch.div(number, side, rounding_mode="floor").float(), (number % side).float()


class RoundedRows(Patches):
    def indices(self, side):
        number = torch.arange(side * side)
        return (number / side).round(), number % side


class FractionalRows(Patches):
    def indices(self, side):
        number = torch.arange(side * side)
        return number / side, number % side


def fractional_rows():
    return FractionalRows(side=14, before=True)


def fractional_rows_cut_to_what_comes():
    return FractionalRows(cut=True)


class FractionalRowsInColumns(Patches):
    """Columns are taken by the other division, and tables rounded to 16 bits."""

    def indices(self, side):
        number = torch.arange(side * side)
        return number // side, number / side

    def forward(self, x):
        self.cos, self.sin = (each.bfloat16().float() for each in (self.cos, self.sin))
        return super().forward(x)


class RoundedRowsAlone(LeavesAClassToken):
    """The same of patches behind a class token that is not turned."""

    def indices(self, side):
        number = torch.arange(side * side)
        return (number / side).round(), number % side


class LastPatchTwice(Patches):
    def angles(self, *given):
        made = super().angles(*given)
        made[-1] = made[-2]
        return made


class QuarterLeftEmpty(Patches):
    """The lower right of the table is never filled."""

    def angles(self, *given):
        made = super().angles(*given).unflatten(0, (16, 16))
        made[8:, 8:] = 0
        return made.flatten(0, 1)


class ClampedRows(Patches):
    """The last rows of a short image are one."""

    def indices(self, side):
        row, column = super().indices(side)
        return row.clamp(max=11), column


class OtherWidth(TableOfPoints):
    """Points are numbered by the height of the image."""

    def __init__(self):
        super().__init__(height=16, width=12, by_number=True)
        self.width = 16


def product_beyond_ten_rows(q, k, positions):
    """Rows turn more the farther their column is, but not near the corner."""
    y, x = positions[:, 0], positions[:, 1]
    y = torch.where(y > 10, y + 0.1 * y * x, y)
    return by_axes(q, y, x), by_axes(k, y, x)


def columns_run_over(q, k, positions):
    """Columns from 14 on stand in the next row."""
    number = positions[:, 0] * 14 + positions[:, 1]
    return by_axes(q, number // 14, number % 14), by_axes(k, number // 14, number % 14)


class KeysOfPatchesSwapped(BothOfPatches):
    """Rows and columns of keys stand in each other's place, in rows that must be whole."""

    def forward(self, q, k):
        swapped = k.unflatten(-2, (16, 16)).transpose(-3, -2).flatten(-3, -2)
        q, k = super().forward(q, swapped)
        return q, k.unflatten(-2, (16, 16)).transpose(-3, -2).flatten(-3, -2)


class OnlyQueriesOfWholeRows(BothWholeRows):
    def forward(self, q, k):
        return super().forward(q, k)[0], k


WRONG = [
    wrong(axes_swapped, "axes of keys swapped", "axes-swapped"),
    wrong(one_axis, "one axis only", "one-axis-only"),
    wrong(OneAxis, "one axis only, in a table", "one-axis-only"),
    wrong(summed, "sum of the axes", "positions-shared"),
    wrong(CountedIn16Bits, "numbers of patches in 16 bits", "not-relative"),
    wrong(RoundedRows, "rows rounded to the nearest", "not-relative"),
    wrong(fractional_rows, "rows by / behind a class token", "rows-not-whole"),
    wrong(fractional_rows_cut_to_what_comes, "rows by /, cut", "rows-not-whole"),
    wrong(KeysOfPatchesSwapped, "axes of keys swapped in whole rows", "axes-swapped"),
    wrong(OnlyQueriesOfWholeRows, "keys of whole rows as they come", "only-queries-rotated"),
    wrong(FractionalRowsInColumns, "columns by / side", "rows-not-whole"),
    wrong(RoundedRowsAlone, "rows rounded behind an unturned token", "not-relative"),
    wrong(LastPatchTwice, "last patch at the place of the one before", "not-relative"),
    wrong(QuarterLeftEmpty, "a quarter of the table empty", "not-relative"),
    wrong(ClampedRows, "last rows clamped", "clamped"),
    wrong(OtherWidth, "points numbered by the height", "not-relative"),
    wrong(product_beyond_ten_rows, "product of the axes far out", "not-relative"),
    wrong(columns_run_over, "columns run over into the next row", "not-relative"),
]
