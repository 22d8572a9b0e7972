"""Sums over the tokens between key and query, however the row is laid out."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.encodings.scores.between import sums_after_key
from posenc.positions import checked_distances, left_padded, packed


def by_loop(values: torch.Tensor) -> torch.Tensor:
    """Σ values over the keys after j and up to i, of one unpadded document."""
    length = values.shape[-1]
    sums = torch.zeros(*values.shape, length)
    for i in range(length):
        for j in range(i):
            sums[..., i, j] = values[..., j + 1 : i + 1].sum(-1)
    return sums


def sums(values, q_positions, k_positions):
    return sums_after_key(values.unsqueeze(-2), checked_distances(q_positions, k_positions))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 2**40))
def test_documents_of_a_packed_row_do_not_see_each_other(lengths, start):
    values = torch.randn(3, sum(lengths), generator=torch.Generator().manual_seed(0))
    positions = packed(lengths) + start
    got, begin = sums(values, positions, positions), 0
    for length in lengths:
        own = slice(begin, begin + length)
        torch.testing.assert_close(got[:, own, own], by_loop(values[:, own]))
        begin += length


@settings(deadline=None, max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=10))
def test_padding_anywhere_does_not_count(real):
    mask = torch.tensor(real)
    values = torch.randn(2, len(real), generator=torch.Generator().manual_seed(0))
    positions = left_padded(mask)
    got = sums(values, positions, positions)[:, mask][:, :, mask]
    torch.testing.assert_close(got, by_loop(values[:, mask]))
