"""What is no whole number, or leaves int64, is refused: torch would cut it off, or run over."""

from fractions import Fraction

import pytest
import torch

from posenc import Positional, positions
from posenc.positions import (
    collate,
    consecutive,
    decoding,
    grid,
    in_documents,
    left_padded,
    mixed_modalities,
    prefixed,
    shard,
    symmetric_video,
)
from posenc.transformer import Encoder, KeyValueCache

LAST = 2**63 - 1
MASK = torch.tensor([[0, 1, 1], [1, 1, 1]])
TYPES = torch.tensor([0, 0, 1, 1, 0])


@pytest.mark.parametrize("odd", [2.5, 2.0, Fraction(5, 2), True, torch.tensor(2.5)], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda odd: consecutive(odd),
        lambda odd: consecutive(3, start=odd),
        lambda odd: decoding(odd),
        lambda odd: shard(8, odd, 4),
        lambda odd: shard(odd, 0, 1),
        lambda odd: grid(odd, 2),
        lambda odd: positions.centers(2, odd),
        lambda odd: symmetric_video(1, 1, 1, start=odd),
        lambda odd: left_padded(MASK, start=odd),
        lambda odd: prefixed(torch.tensor([[0, 0]]), at=(odd, odd)),
        lambda odd: collate([[1, 2]], length=4, padding_id=odd),
    ],
)
def test_what_is_no_whole_number_is_refused(call, odd):
    with pytest.raises(TypeError, match=r"must be (a whole number|integers)"):
        call(odd)


def test_the_last_positions_are_there_and_no_later_ones():
    assert consecutive(3, start=LAST - 2).tolist() == [LAST - 2, LAST - 1, LAST]
    for start in (LAST - 1, LAST + 1):
        with pytest.raises(ValueError, match=r"3 positions from .* leave int64"):
            consecutive(3, start=start)
    with pytest.raises(ValueError, match=r"A video of 2 frames .* leaves int64"):
        symmetric_video(2, 2, 2, start=LAST)
    for start in (LAST, torch.tensor([0, LAST])):
        with pytest.raises(ValueError, match="Count from another start"):
            left_padded(MASK, start=start)


@pytest.mark.parametrize("start", [-7, -1, 0, 1, 5])
def test_rows_that_begin_at_any_number_are_counted_from_there(start):
    want = [[max(min(start, 0), start - 1), start, start + 1], [start, start + 1, start + 2]]
    assert left_padded(MASK, start=start).tolist() == want
    assert left_padded(MASK, start=torch.tensor([start, start])).tolist() == want


def test_a_cache_before_0_goes_on_where_it_ended():
    encoder = Encoder(8, 2, 1, is_causal=True, positional=Positional()).eval()
    cache, x = KeyValueCache(), torch.randn(1, 2, 8)
    encoder(x, positions=torch.tensor([-9, -8]), cache=cache)
    encoder(x, padding_mask=torch.tensor([[True, True]]), cache=cache)
    assert cache.positions is not None
    assert cache.positions.flatten().tolist() == [-9, -8, -7, -6]


@pytest.mark.parametrize(
    "call",
    [
        lambda mask: in_documents(torch.zeros_like(mask, dtype=torch.int64), mask),
        lambda mask: mixed_modalities(torch.zeros_like(mask, dtype=torch.int64), {}, mask=mask),
        left_padded,
    ],
)
def test_an_additive_mask_is_no_mask(call):
    with pytest.raises(TypeError, match="For an additive mask pass mask == 0"):
        call(torch.tensor([[0.0, 0.0, -torch.inf]]))


def test_any_number_but_0_marks_one_real_token():
    ids = torch.tensor([5, 5, 9, 9])
    assert in_documents(ids, torch.tensor([2, 2, -1, 0])).tolist() == [0, 1, 0, 0]
    with pytest.raises(ValueError, match=r"mask has shape \(2, 4\)"):
        in_documents(ids, torch.ones(2, 4) == 1)


def test_times_beyond_int64_and_of_no_grid_are_refused():
    with pytest.raises(ValueError, match=r"up to 2\^62"):
        mixed_modalities(TYPES, {1: [(1, 1, 2)]}, times={1: [[LAST]]})
    with pytest.raises(ValueError, match=r"times has types \[2\]"):
        mixed_modalities(TYPES, {1: [(1, 1, 2)]}, times={2: [[5]]})


def test_a_mask_among_documents_of_tokens_is_refused():
    with pytest.raises(TypeError, match=r"token ids are torch\.bool"):
        collate([torch.tensor([1, 2]), torch.tensor([True])], length=4)


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("real", [[[True, True]], [[False, True]], [[False, False]]])
def test_every_cache_goes_on_behind_the_last_real_token(size, real):
    encoder = Encoder(8, 2, 1, is_causal=True, positional=Positional()).eval()
    cache, x = KeyValueCache(size), torch.randn(1, 2, 8)
    with torch.no_grad():
        given = {"positions": torch.tensor([[-9, -8]]), "padding_mask": torch.tensor(real)}
        encoder(x, **given, cache=cache)
        encoder(x, cache=cache)
    assert isinstance(cache.positions, torch.Tensor)
    start = -7 if real[0][1] else 0
    assert cache.positions[0, 2:4].tolist() == [start, start + 1]


@pytest.mark.parametrize("size", [None, 8])
def test_nothing_stands_behind_the_last_position(size):
    encoder = Encoder(8, 2, 1, is_causal=True, positional=Positional()).eval()
    cache, x = KeyValueCache(size), torch.randn(1, 2, 8)
    with torch.no_grad():
        encoder(x, positions=torch.tensor([[LAST - 1, LAST]]), cache=cache)
        with pytest.raises(ValueError, match="next positions run from"):
            encoder(x, cache=cache)
