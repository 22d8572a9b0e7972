"""What a position is: whole numbers that int64 holds, in whatever they come."""

import numpy as np
import pytest
import torch

from posenc.positions import Coordinates, checked


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    ],
)
def test_integers_of_every_width_become_int64(dtype):
    positions = checked(torch.tensor([0, 7, 100], dtype=dtype))
    assert positions.dtype == torch.int64
    assert positions.tolist() == [0, 7, 100]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([3, 4, 2**62], [3, 4, 2**62]),
        (np.array([3, 4, 2**62]), [3, 4, 2**62]),
        (np.array([3, 4], dtype=np.uint8), [3, 4]),
        (range(5, -3, -2), [5, 3, 1, -1]),
        ([[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        ([], []),
    ],
    ids=repr,
)
def test_lists_ranges_and_arrays_of_whole_numbers_are_positions(given, want):
    positions = checked(given)
    assert positions.dtype == torch.int64
    assert positions.tolist() == want
    assert checked(given, device="meta").is_meta


@pytest.mark.parametrize(
    "given",
    [
        *(torch.tensor([1.0]), torch.tensor([True]), [0, 1.5], np.array([1.0])),
        Coordinates([0.5]),
    ],
    ids=repr,
)
def test_floating_and_boolean_positions_are_refused(given):
    with pytest.raises(TypeError, match="integers"):
        checked(given)
