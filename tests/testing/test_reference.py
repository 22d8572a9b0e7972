"""The reference of attention says what it does not apply."""


import pytest
import torch

from posenc import CABLE, SHAPE, Positional, Randomized, Rotary, attention
from posenc.testing.reference import reference_attention

X, HERE = torch.ones(1, 2, 3, 4), torch.arange(3)
CABLED = Positional(scores=CABLE(2, 8))


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
        ((2, 2, 2), {"positional": CABLED}, ValueError, "CABLE reads .*; q_hidden was not given"),
        (
            (2, 2, 2),
            {"positional": CABLED, "q_hidden": torch.ones(1, 3, 8)},
            ValueError,
            "k_hidden was not given",
        ),
        ((2, 1, 2), {}, ValueError, "keys and values one number of heads"),
        ((1, 2, 2), {}, ValueError, "query, key and value have shapes .* or a multiple"),
        ((3, 2, 2), {}, ValueError, "query, key and value have shapes .* or a multiple"),
    ],
)
def test_what_attention_refuses_is_refused(heads, given, error, said):
    q, k, v = (torch.ones(1, number, 3, 4) for number in heads)
    places = {"q_positions": HERE, "k_positions": HERE}
    with pytest.raises(error, match=said):
        reference_attention(q, k, v, **places, **given)
    if "added" not in given:
        with pytest.raises(error):
            attention(q, k, v, **places, **given)


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
