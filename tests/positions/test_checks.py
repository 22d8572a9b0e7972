"""What a position is: whole numbers that int64 holds, in whatever they come."""

import re

import numpy as np
import pytest
import torch

from posenc import ALiBi, Learned, Rotary, Sinusoidal
from posenc.positions import checked


def refused(error, text):
    return pytest.raises(error, match=re.escape(text))


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
    "given",
    [
        [3, 4, 2**62],
        (3, 4, 2**62),
        np.array([3, 4, 2**62]),
        np.array([3, 4, 2**62], dtype=np.uint64),
        np.array([3, 4, 2**62], dtype=">i8"),
        np.array([2**62, 4, 3])[::-1],
        [np.int64(3), 4, 2**62],
    ],
    ids=["list", "tuple", "array", "unsigned", "big-endian", "reversed", "numbers"],
)
def test_lists_and_arrays_of_whole_numbers_are_positions(given):
    positions = checked(given)
    assert positions.dtype == torch.int64
    assert positions.tolist() == [3, 4, 2**62]


def test_ranges_and_nested_lists_are_positions():
    assert checked(range(5, -3, -2)).tolist() == [5, 3, 1, -1]
    assert checked(range(2**63 - 2, 2**63)).tolist() == [2**63 - 2, 2**63 - 1]
    assert checked([[0, 1], [2, 3]]).tolist() == [[0, 1], [2, 3]]
    assert checked([]).dtype == torch.int64
    assert checked([1], device="meta").is_meta


def test_encodings_take_them():
    """Everywhere that positions are checked, which is everywhere."""
    whole = torch.arange(4)
    for encoding in (Sinusoidal(8), Rotary(8), Learned(8, max_len=9)):
        for given in (range(4), [0, 1, 2, 3], np.arange(4)):
            assert torch.equal(encoding.table(given), encoding.table(whole))
    assert torch.equal(ALiBi(2).table(range(4), [0, 1]), ALiBi(2).table(whole, whole[:2]))
    x = torch.randn(2, 4, 8)
    assert torch.equal(Sinusoidal(8)(x, range(4)), Sinusoidal(8)(x))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (torch.tensor([1.0]), "positions are torch.float32; they must be integers (int64)."),
        (torch.tensor([1], dtype=torch.bfloat16), "positions are torch.bfloat16; they must be"),
        (torch.tensor([1j]), "positions are torch.complex64; they must be integers (int64)."),
        (torch.tensor([True]), "A mask becomes positions through posenc.positions.left_padded"),
        ([0.0, 1.0], "positions are torch.float32; they must be integers (int64)."),
        ([0, 1.5], "positions are torch.float32; they must be integers (int64)."),
        (np.array([1.0]), "positions are torch.float32; they must be integers (int64)."),
        ([True, False], "A mask becomes positions through posenc.positions.left_padded"),
        (np.array([True]), "A mask becomes positions through posenc.positions.left_padded"),
        ("012", "positions are a str; they must be an int64 tensor, or a list, a range or an"),
        (7, "positions are a int; they must be an int64 tensor, or a list, a range or an array"),
        ([[0], [1, 2]], "positions are a list; they must be an int64 tensor, or a list"),
        (None, "positions are a NoneType; they must be an int64 tensor"),
    ],
)
def test_what_cannot_be_a_position_is_refused(given, text):
    with refused(TypeError, text):
        checked(given)


@pytest.mark.parametrize(
    "given",
    [
        torch.tensor([2**63], dtype=torch.uint64),
        np.array([0, 2**63], dtype=np.uint64),
    ],
    ids=["tensor", "array"],
)
def test_unsigned_positions_that_int64_does_not_hold_are_refused(given):
    """They were read as negative."""
    with refused(ValueError, "positions are unsigned and reach 2^63 or more, which int64 does not"):
        checked(given)
    with refused(ValueError, "positions hold a number that is no int64"):
        checked([0, 2**63])


def test_unsigned_positions_that_nobody_can_look_at_are_refused():
    positions = torch.tensor([[3]], dtype=torch.uint64)
    with refused(TypeError, "inside a graph or a transform nobody can look. Call .long() on them"):
        torch.func.vmap(checked)(positions)
    assert checked(positions.to("meta")).dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_floating_positions_would_collide(dtype):
    """The reason for the refusal: neighbors that a float dtype cannot tell apart."""
    neighbors = torch.tensor([2**24, 2**24 + 1])
    assert neighbors.to(dtype).unique().numel() == 1
