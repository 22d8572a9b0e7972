"""Packed batches hold every token once, and say of each where it stands."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.positions import collate, in_documents, packed, unshard

DOCUMENTS = st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=9), min_size=1, max_size=9)


@settings(max_examples=50)
@given(documents=DOCUMENTS, length=st.integers(9, 20))
def test_real_tokens_are_the_documents_in_their_order(documents, length):
    batch = collate(documents, length=length)
    assert batch.input_ids[batch.padding_mask].tolist() == list(chain(*documents))
    real = batch.padding_mask
    assert batch.positions[real].equal(packed([len(d) for d in documents]))
    assert in_documents(batch.document_ids).equal(batch.positions)
    assert packed(cu_seqlens=batch.cu_seqlens).equal(batch.positions.flatten())
    # Each row holds as many documents as fit.
    for row in range(len(real) - 1):
        following = batch.padding_mask[row + 1] & (batch.document_ids[row + 1] == 0)
        assert int(real[row].sum() + following.sum()) > length


@pytest.mark.parametrize("kind", [list, np.array, lambda d: np.array(d, "int32"), torch.tensor])
def test_lists_arrays_and_tensors_are_the_same(kind):
    documents = [[1, 2, 3], [4], [5, 6]]
    expected = collate(documents, length=4, padding_id=9)
    for made, plain in zip(
        collate([kind(d) for d in documents], length=4, padding_id=9), expected, strict=True
    ):
        assert made.equal(plain)
        assert made.dtype == plain.dtype


@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "striped"])
def test_shares_of_all_ranks_are_the_whole(layout):
    documents = [list(range(1, n)) for n in (5, 9, 2, 7)]
    shares = [collate(documents, rank=r, world=3, layout=layout) for r in range(3)]
    whole = collate(documents, length=3 * shares[0].input_ids.shape[1])
    for number in range(4):
        parts = [share[number] for share in shares]
        assert unshard(parts, dim=1, layout=layout).equal(whole[number])
    assert all(share.cu_seqlens.equal(whole.cu_seqlens) for share in shares)


IDS = [[1, 2, 3], [4, 5, 6, 7, 8], [9, 1], [2, 3]]


def same(found, expected) -> bool:
    return all(a.equal(b) for a, b in zip(found, expected, strict=True))


def test_it_takes_a_column_of_arrays():
    """As Ray Data has it: an array of arrays, of any lengths and of equal ones."""
    for documents in (IDS, [[1, 2], [3, 4]]):
        column = np.empty(len(documents), dtype=object)
        column[:] = [np.array(each) for each in documents]
        assert same(collate(column, length=8), collate(documents, length=8))
    assert same(collate(np.array([[1, 2], [3, 4]]), length=8), collate([[1, 2], [3, 4]], length=8))
