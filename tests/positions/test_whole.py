"""Sizes, counts and starts are whole numbers: no builder of positions cuts one down in silence."""

import inspect
import re
from math import nan

import numpy as np
import pytest
import torch

from posenc import positions

ODD = [2.5, True, torch.tensor(2.5), torch.tensor(True), np.float64(2.5), np.True_, "3", nan, 3j]
MASK = torch.ones(2, 4, dtype=torch.bool)
POINTS = torch.zeros(3, 2, dtype=torch.int64)
IMAGE = torch.tensor([0, 1, 1, 1, 1, 0])

USUAL = {
    "centers": lambda size=2, cell=1, start=0, axis=0: positions.centers(
        size, 3, cell=(cell, 2), start=(start, 0), order=(axis, 1)
    ),
    "collate": lambda **odd: positions.collate([[1, 2], [3]], **{"length": 8, "world": 2, **odd}),
    "consecutive": lambda length=4, start=0: positions.consecutive(length, start=start),
    "decoding": lambda cached=3, length=2: positions.decoding(cached, length),
    "diagonal_video": lambda **odd: positions.diagonal_video(
        **{"frames": 2, "height": 3, "width": 2, **odd}
    ),
    "grid": lambda size=2, start=0, stride=1, axis=0: positions.grid(
        size, 3, start=start, stride=stride, order=(axis, 1)
    ),
    "left_padded": lambda start=0: positions.left_padded(MASK, start=start),
    "mixed_modalities": lambda size=2: positions.mixed_modalities(IMAGE, {1: [(1, 2, size)]}),
    "normalized_grid": lambda size=2, low=-1: positions.normalized_grid(size, 3, low=low),
    "packed": lambda length=2: positions.packed([length, 2]),
    "packed_grids": lambda size=2, prefix=0, length=20: positions.packed_grids(
        [(size, 2)], prefix=prefix, length=length
    ),
    "prefixed": lambda count=1, at=0: positions.prefixed(POINTS, count, at=(at, 0)),
    "shard": lambda length=8, rank=0, world=2: positions.shard(length, rank, world),
    "symmetric_video": lambda **odd: positions.symmetric_video(
        **{"frames": 2, "height": 3, "width": 2, **odd}
    ),
}
ASKED = {
    name: [p.name for p in inspect.signature(build).parameters.values() if p.name != "odd"]
    for name, build in USUAL.items()
} | {
    "collate": ["length", "padding_id", "rank", "world"],
    "diagonal_video": ["frames", "height", "width", "start"],
    "symmetric_video": ["frames", "height", "width", "start"],
}


@pytest.mark.parametrize(
    ("name", "asked"), [(name, asked) for name in USUAL for asked in ASKED[name]]
)
def test_no_number_is_cut(name, asked):
    USUAL[name]()  # is right as it is
    for odd in ODD:
        with pytest.raises((TypeError, ValueError), match=r"must be|must name|must hold|whole"):
            USUAL[name](**{asked: odd})


@pytest.mark.parametrize("whole", [np.int64(4), np.uint8(4), torch.tensor(4)], ids=repr)
def test_whole_numbers_of_others_are_taken(whole):
    assert positions.consecutive(whole).tolist() == [0, 1, 2, 3]
    assert positions.shard(8, 0, 2).tolist() == positions.shard(2 * whole, 0, 2).tolist()
    assert len(positions.grid(whole, 2)) == 8


def test_every_builder_that_takes_a_whole_number_is_asked():
    takes = {
        name
        for name in positions.__all__
        if inspect.isfunction(build := getattr(positions, name))
        for parameter in inspect.signature(build).parameters.values()
        if re.match(r"<class 'int'>|int\b", str(parameter.annotation)) and parameter.name != "dim"
    }
    assert len(takes) > 10
    assert takes <= USUAL.keys()
