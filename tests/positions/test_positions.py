"""Positions: however the tokens are laid out, a token stands where it stands."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.positions import (
    consecutive,
    decoding,
    packed,
    shard,
    unshard,
)

LENGTHS = st.lists(st.integers(0, 9), max_size=8)
LAYOUTS = ["contiguous", "zigzag", "striped"]


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


def test_a_run_may_begin_and_end_at_the_ends_of_int64():
    assert consecutive(2, start=2**63 - 2).tolist() == [2**63 - 2, 2**63 - 1]
    assert consecutive(2, start=-(2**63)).tolist() == [-(2**63), -(2**63) + 1]


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


@pytest.mark.parametrize("given", [{}, {"lengths": [1], "document_ids": torch.tensor([0])},
                                   {"cu_seqlens": torch.tensor([1, 2])},
                                   {"cu_seqlens": torch.tensor([0, 3, 2])}])  # fmt: skip
def test_a_packed_row_has_one_description_that_ascends_from_0(given):
    with pytest.raises((TypeError, ValueError), match=r"exactly one|ascend from 0"):
        packed(**given)
