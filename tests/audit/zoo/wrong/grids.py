"""Rotary encodings of a grid that lose an axis, or mix them."""

import torch
from tests.audit.zoo.arithmetic import halves, waves
from tests.audit.zoo.right.grids import TableOfPoints, Video
from tests.audit.zoo.specimen import wrong


def by_axes(x, first, second):
    """The first half of the channels by one coordinate, the last by the other."""
    parts = zip(x.chunk(2, -1), (first, second), strict=True)
    return torch.cat([halves(part, *waves(p, part.shape[-1], 100.0)) for part, p in parts], -1)


def axes_swapped(q, k, positions):
    """Keys take columns for rows."""
    y, x = positions[:, 0], positions[:, 1]
    return by_axes(q, y, x), by_axes(k, x, y)


def one_axis(q, k, positions):
    """Both halves turn by the row."""
    y = positions[:, 0]
    return by_axes(q, y, y), by_axes(k, y, y)


def summed(q, k, positions):
    """All channels turn by row + column: the diagonals share their positions."""
    turn = waves(positions.sum(-1), q.shape[-1], 100.0)
    return halves(q, *turn), halves(k, *turn)


def columns_run_over(q, k, positions):
    """Columns from 14 on stand in the next row."""
    number = positions[:, 0] * 14 + positions[:, 1]
    return by_axes(q, number // 14, number % 14), by_axes(k, number // 14, number % 14)


class OtherWidth(TableOfPoints):
    """Points are numbered by the height of the image."""

    def __init__(self):
        super().__init__(height=16, width=12, by_number=True)
        self.width = 16


def video_without_columns():
    """Pairs of columns go by rows."""
    return Video(axes=(0, 1, 1) * 8)


WRONG = [
    wrong(video_without_columns, "no columns of a video", "one-axis-only"),
    wrong(axes_swapped, "axes of keys swapped", "axes-swapped"),
    wrong(one_axis, "one axis only", "one-axis-only"),
    wrong(summed, "sum of the axes", "positions-shared"),
    wrong(OtherWidth, "points numbered by the height", "not-relative"),
    wrong(columns_run_over, "columns run over into the next row", "not-relative"),
]
