"""The reference of attention at its borders, as attention is."""

import pytest
import torch

from posenc import attention
from posenc.testing.reference import reference_attention

X, HERE = torch.ones(1, 2, 3, 4), torch.arange(3)


def test_a_sink_of_infinity_takes_all():
    sinks = torch.tensor([float("inf"), 0.0])
    got = reference_attention(X, X, X, q_positions=HERE, k_positions=HERE, sinks=sinks)
    assert got[:, 0].count_nonzero() == 0
    torch.testing.assert_close(got.float(), attention(X, X, X, sinks=sinks))


@pytest.mark.parametrize("sinks", [None, torch.zeros(2)])
def test_without_keys_nothing_comes(sinks):
    nothing, none = X[:, :, :0], HERE[:0]
    got = reference_attention(X, nothing, nothing, q_positions=HERE, k_positions=none, sinks=sinks)
    assert torch.equal(got, torch.zeros(X.shape, dtype=torch.float64))
    assert torch.equal(got.float(), attention(X, nothing, nothing, sinks=sinks))
