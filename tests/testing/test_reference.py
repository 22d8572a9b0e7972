"""The reference of attention says what it does not apply."""

import pytest
import torch

from posenc import SHAPE, Positional, Randomized, Rotary, attention
from posenc.testing.reference import reference_attention

X, HERE = torch.ones(1, 2, 3, 4), torch.arange(3)


def _of(positional):
    return reference_attention(X, X, X, positional=positional, q_positions=HERE, k_positions=HERE)


@pytest.mark.parametrize("remapping", [Randomized(100), SHAPE(100)], ids=["always", "training"])
def test_changes_of_positions_are_refused(remapping):
    positional = Positional(queries_keys=Rotary(4), positions=remapping)
    with pytest.raises(ValueError, match=r"changes positions, by .*positional\.remapped"):
        _of(positional)


def test_what_changes_positions_in_training_alone_is_none_in_evaluation():
    positional = Positional(queries_keys=Rotary(4), positions=SHAPE(100)).eval()
    assert torch.equal(_of(positional), _of(Positional(queries_keys=Rotary(4))))


@pytest.mark.parametrize(
    ("heads", "given", "error", "said"),
    [
        (
            (2, 2, 2),
            {"added": torch.ones(3, 3).bool()},
            TypeError,
            "added is torch.bool; .*visible",
        ),
        ((2, 2, 2), {"sinks": torch.zeros(1)}, ValueError, r"sinks have shape \(1,\).*be \[2\]"),
        ((2, 1, 2), {}, ValueError, "keys and values one number of heads"),
        ((1, 2, 2), {}, ValueError, "query, key and value have shapes .* or a multiple"),
        ((3, 2, 2), {}, ValueError, "query, key and value have shapes .* or a multiple"),
    ],
)
def test_what_attention_refuses_is_refused(heads, given, error, said):
    q, k, v = (torch.ones(1, number, 3, 4) for number in heads)
    with pytest.raises(error, match=said):
        reference_attention(q, k, v, q_positions=HERE, k_positions=HERE, **given)


@pytest.mark.parametrize("sinks", [None, torch.zeros(2)])
def test_without_keys_nothing_comes(sinks):
    nothing, none = X[:, :, :0], HERE[:0]
    got = reference_attention(X, nothing, nothing, q_positions=HERE, k_positions=none, sinks=sinks)
    assert torch.equal(got, torch.zeros(X.shape, dtype=torch.float64))
    assert torch.equal(got.float(), attention(X, nothing, nothing, sinks=sinks))
