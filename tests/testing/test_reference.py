"""The reference of attention says what it does not apply."""

import pytest
import torch

from posenc import SHAPE, Positional, Rotary, attention
from posenc.testing.reference import reference_attention

X, HERE = torch.ones(1, 2, 3, 4), torch.arange(3)


def _of(positional):
    return reference_attention(X, X, X, positional=positional, q_positions=HERE, k_positions=HERE)


def test_changes_of_positions_are_refused_unless_they_belong_to_training():
    positional = Positional(queries_keys=Rotary(4), positions=SHAPE(100))
    with pytest.raises(ValueError, match="may draw other positions"):
        _of(positional)
    assert torch.equal(_of(positional.eval()), _of(Positional(queries_keys=Rotary(4))))


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
