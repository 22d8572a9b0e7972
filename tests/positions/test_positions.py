"""Positions: however the tokens are laid out, a token stands where it stands."""

import re
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.positions import (
    consecutive,
    decoding,
    grid,
    in_documents,
    left_padded,
    packed,
    runs,
    shard,
    unshard,
)

LENGTHS = st.lists(st.integers(0, 9), max_size=8)
LAYOUTS = ["contiguous", "zigzag", "striped"]


def refused(error, text):
    return pytest.raises(error, match=re.escape(text))


# Plain ranges and decoding.


def test_plain_counts_from_start():
    assert consecutive(4).tolist() == [0, 1, 2, 3]
    assert consecutive(3, start=-2).tolist() == [-2, -1, 0]
    assert consecutive(2, start=2**62).tolist() == [2**62, 2**62 + 1]
    assert consecutive(0).tolist() == []


@given(cached=st.integers(0, 2**40), length=st.integers(0, 20))
def test_prefill_and_then_decoding_is_one_plain_range(cached, length):
    assert torch.equal(decoding(cached, length), consecutive(length, start=cached))
    steps = [decoding(cached + step) for step in range(length)]
    assert [int(step) for step in steps] == consecutive(length, start=cached).tolist()


@pytest.mark.parametrize("number", [int, np.int64, torch.tensor])
def test_negative_lengths_are_refused(number):
    with refused(ValueError, "length is -1; it must be 0 or more."):
        consecutive(number(-1))
    with refused(ValueError, "cached is -3; a cache holds 0 tokens or more."):
        decoding(number(-3))
    with refused(ValueError, "length is -2; it must be 0 or more."):
        decoding(number(3), number(-2))


@pytest.mark.parametrize("number", [int, np.int64, torch.tensor])
def test_a_run_may_end_at_the_last_of_int64(number):
    assert consecutive(number(2), start=number(2**63 - 2)).tolist() == [2**63 - 2, 2**63 - 1]
    with refused(ValueError, "3 positions from 9223372036854775806 on leave int64"):
        consecutive(number(3), start=number(2**63 - 2))


# Packing.


@given(lengths=LENGTHS)
def test_three_descriptions_of_a_packed_row_are_one(lengths):
    expected = [p for length in lengths for p in range(length)]
    counts = torch.tensor(lengths, dtype=torch.int64)
    boundaries = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    ids = torch.arange(len(lengths)).repeat_interleave(counts)
    assert packed(lengths).tolist() == expected
    assert packed(counts).tolist() == expected
    assert packed(cu_seqlens=boundaries).tolist() == expected
    assert packed(cu_seqlens=boundaries.int()).tolist() == expected
    assert packed(document_ids=ids).tolist() == expected


def test_documents_are_runs_of_equal_ids_row_by_row():
    ids = torch.tensor([[3, 3, 1, 1, 3, 3], [0, 0, 0, 0, 0, 0], [5, 4, 3, 3, 3, 9]])
    assert packed(document_ids=ids).tolist() == [
        [0, 1, 0, 1, 0, 1],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 0, 1, 2, 0],
    ]


def test_packed_takes_one_description_of_whole_numbers():
    with refused(TypeError, "packed() was given nothing; it takes exactly one of lengths,"):
        packed()
    with refused(TypeError, "packed() was given lengths and cu_seqlens; it takes exactly one"):
        packed([1], cu_seqlens=torch.tensor([0, 1]))
    with refused(ValueError, "lengths are [2, -1]; they must be one row of 0 or more each."):
        packed([2, -1])
    with refused(ValueError, "lengths are [[1, 2]]; they must be one row"):
        packed(torch.tensor([[1, 2]]))
    with pytest.raises(TypeError, match="whole number"):
        packed([1.5])
    with refused(TypeError, "lengths are torch.float32; they must be integers"):
        packed(torch.tensor([1.5]))
    with refused(TypeError, "document_ids are torch.bool; they must be integers"):
        packed(document_ids=torch.tensor([True]))


@pytest.mark.parametrize("boundaries", [[1, 2], [0, 3, 2], [], [[0, 1]]])
def test_boundaries_that_do_not_ascend_from_0_are_refused(boundaries):
    with refused(ValueError, "it must be one row that begins at 0 and never falls. It is the"):
        packed(cu_seqlens=torch.tensor(boundaries, dtype=torch.int64))


# Grids.


@given(sizes=st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_a_grid_holds_every_point_row_after_row(sizes):
    assert grid(*sizes).shape[1] == len(sizes)
    assert grid(*sizes).tolist() == [list(point) for point in product(*map(range, sizes))]


def test_a_grid_needs_sizes():
    with refused(ValueError, "sizes are (); give one or more, each 0 or more."):
        grid()
    with refused(ValueError, "sizes are (2, -1); give one or more, each 0 or more."):
        grid(2, -1)


# Shards.


@pytest.mark.parametrize("layout", LAYOUTS)
@given(world=st.integers(1, 9), size=st.integers(0, 5))
def test_the_shards_of_all_ranks_are_the_sequence(layout, world, size):
    length = size * world * 2
    pieces = [shard(length, rank, world, layout=layout) for rank in range(world)]
    assert {len(piece) for piece in pieces} == {2 * size}
    assert torch.equal(torch.cat(pieces).sort().values, consecutive(length))
    assert torch.equal(unshard(pieces, layout=layout), consecutive(length))


@given(world=st.integers(1, 9), size=st.integers(1, 5))
def test_zigzag_gives_every_rank_the_same_causal_work(world, size):
    """A token at p attends to p + 1 tokens; contiguous shards are as uneven as can be."""
    length = size * world * 2

    def work(layout):
        return {int((shard(length, r, world, layout=layout) + 1).sum()) for r in range(world)}

    assert len(work("zigzag")) == 1
    assert len(work("contiguous")) == world


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unshard_puts_values_back_along_any_axis(layout, axis):
    values = torch.arange(12 * 2 * 3).reshape(12, 2, 3).movedim(0, axis)
    pieces = [values.index_select(axis, shard(12, rank, 3, layout=layout)) for rank in range(3)]
    assert torch.equal(unshard(pieces, dim=axis, layout=layout), values)


def test_shards_that_do_not_fit_are_refused():
    with refused(
        ValueError, "layout is 'ring'; it must be one of ('contiguous', 'zigzag', 'striped')."
    ):
        shard(8, 0, 2, layout="ring")
    with refused(ValueError, "rank is 2 of 2; it must be one of 0 … world − 1."):
        shard(8, 2, 2)
    with refused(ValueError, "rank is -1 of 2; it must be one of 0 … world − 1."):
        shard(8, -1, 2)
    with refused(ValueError, "rank is 0 of 0; it must be"):
        shard(8, 0, 0)
    with refused(
        ValueError,
        "length is 6; the zigzag layout over 2 ranks needs a multiple of 4. Pad the "
        "sequence to one.",
    ):
        shard(6, 0, 2, layout="zigzag")
    with refused(ValueError, "length is 7; the contiguous layout over 2 ranks needs a multiple of"):
        shard(7, 0, 2)
    with refused(ValueError, "shards have shapes [(2,), (3,)]; they must be equal, one a rank."):
        unshard([consecutive(2), consecutive(3)])
    with refused(ValueError, "shards have shapes []; they must be equal, one a rank."):
        unshard([])


# What all of them share.

MAKERS = {
    "consecutive": lambda device: consecutive(4, device=device),
    "decoding": lambda device: decoding(4, 2, device=device),
    "left_padded": lambda device: left_padded(torch.ones(2, 3, dtype=torch.bool, device=device)),
    "document_ids": lambda device: packed(
        document_ids=torch.ones(2, 3, dtype=torch.int32, device=device)
    ),
    "grid": lambda device: grid(2, 3, device=device),
    "shard": lambda device: shard(8, 1, 2, layout="zigzag", device=device),
    "unshard": lambda device: unshard(
        [shard(8, rank, 2, device=device) for rank in range(2)], layout="zigzag"
    ),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_positions_are_int64_on_the_device_asked_for(name, device):
    positions = MAKERS[name](device)
    assert positions.dtype == torch.int64
    assert positions.device.type == device


def test_packed_lengths_are_int64():
    assert packed([]).dtype == packed([2, 0, 1]).dtype == torch.int64


def test_a_run_begins_at_the_first_of_int64_or_after_it():
    assert consecutive(2, start=-(2**63)).tolist() == [-(2**63), -(2**63) + 1]
    for start in (-(2**63) - 1, -(10**30)):
        with pytest.raises(ValueError, match=r"before the first int64, -2\^63"):
            consecutive(2, start=start)


@pytest.mark.parametrize("describe", [lambda ids: packed(document_ids=ids), in_documents, runs])
def test_a_document_id_alone_is_no_row(describe):
    with pytest.raises(
        ValueError, match=r"document_ids are tensor\(3\); they must be \[\*batch, seq"
    ):
        describe(torch.tensor(3))


def test_lengths_are_several():
    with pytest.raises(TypeError, match=r"lengths are 3, which is one number\. Pass a list"):
        packed(3)


def test_shards_may_come_one_by_one():
    parts = (shard(8, rank, 2, layout="zigzag") for rank in range(2))
    assert unshard(parts, layout="zigzag").tolist() == list(range(8))
    with pytest.raises(ValueError, match=r"shards have shapes \[\]"):
        unshard(iter([]))
