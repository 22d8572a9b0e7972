"""Padding: it moves no token, and it stands where no token can be mistaken for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.positions import consecutive, in_documents, left_padded, over_padding

ROWS = st.lists(st.booleans(), min_size=1, max_size=9)


@given(padding=st.integers(0, 6), tokens=st.integers(0, 6), behind=st.integers(0, 3))
def test_padding_moves_no_token(padding, tokens, behind):
    real = [False] * padding + [True] * tokens + [False] * behind
    mask = torch.tensor([real], dtype=torch.bool)
    positions = left_padded(mask)
    assert torch.equal(positions[mask], consecutive(tokens))
    assert (positions >= 0).all()
    assert torch.equal(positions, left_padded(mask.long()))


@given(first=ROWS, second=ROWS)
def test_a_row_in_two_chunks_stands_where_the_whole_row_does(first, second):
    """Padding too, wherever it lies: what counts tokens tells it by its place."""
    whole = torch.tensor([first + second])
    start = torch.tensor([sum(first)])
    chunks = left_padded(whole[:, : len(first)]), left_padded(whole[:, len(first) :], start=start)
    assert torch.equal(torch.cat(chunks, dim=-1), left_padded(whole))


@given(mask=ROWS, seed=st.integers(0, 99))
def test_over_padding_is_what_left_padded_says_of_padding(mask, seed):
    """Whatever padding stood at before; real tokens keep their places."""
    mask = torch.tensor([mask])
    wanted = left_padded(mask)
    generator = torch.Generator().manual_seed(seed)
    anywhere = torch.randint(-9, 99, mask.shape, generator=generator)
    if mask.any():
        assert torch.equal(over_padding(wanted.where(mask, anywhere), mask), wanted)


def test_no_position_is_spread_over_a_row():
    mask = torch.ones(2, 4, dtype=torch.bool)
    for positions in ([5], [[5], [6]]):
        with pytest.raises(ValueError, match="positions have shape"):
            over_padding(positions, mask)
    assert over_padding([5, 6, 7, 7], torch.tensor([1, 2, 0, 1])).tolist() == [5, 6, 6, 7]


@pytest.mark.parametrize("start", [-7, -1, 0, 1, 5])
def test_rows_that_begin_at_any_number_are_counted_from_there(start):
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    want = [[max(min(start, 0), start - 1), start, start + 1], [start, start + 1, start + 2]]
    assert left_padded(mask, start=start).tolist() == want
    assert left_padded(mask, start=torch.tensor([start, start])).tolist() == want


def test_documents_have_padding_too():
    ids = torch.tensor([5, 5, 9, 9])
    assert in_documents(ids, torch.tensor([2, 2, -1, 0])).tolist() == [0, 1, 0, 0]
    with pytest.raises(TypeError, match=r"mask is torch\.float32"):
        in_documents(ids, torch.tensor([0.0, 0.0, -torch.inf, 0.0]))
