"""Lengths read once, with the buckets that they meet held against the bias itself."""

import pytest
import torch

from posenc import T5Bias
from posenc.inspection.lengths import length_statistics


def test_values_by_hand():
    found = length_statistics(iter([5, 10, 7]), trained_length=6)
    assert (found.documents, found.tokens, found.longest, found.beyond) == (3, 22, 10, 5)
    assert (found.documents_beyond, found.buckets_never_met) == (2, ())
    assert found.mean == 22 / 3
    assert length_statistics([]).mean == 0


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("longest", [1, 9, 64, 5000])
def test_a_bucket_is_never_met_if_its_number_gets_no_gradient(bidirectional, longest):
    bias = T5Bias(1, bidirectional=bidirectional)
    few = range(1 - min(longest, 300), min(longest, 300))
    bias.profile(torch.tensor(few)).sum().backward()
    untouched = (bias.weight.grad == 0).flatten().nonzero().flatten().tolist()
    assert list(length_statistics([longest], bias=bias).buckets_never_met) == untouched


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="-1 tokens"):
        length_statistics([3, -1])


@pytest.mark.parametrize("lengths", [b"35", "35", {3, 5}, {"first": 3}, {3: "first"}])
def test_lengths_are_no_letters_keys_or_sets(lengths):
    """Bytes are codes of letters, dictionaries give keys, and sets forget the second of two."""
    with pytest.raises(TypeError, match="it must be several whole numbers"):
        length_statistics(lengths)
