"""Two orders of the same tokens: what a model without positions cannot tell apart."""

import pytest
import torch

from posenc import ALiBi, Positional, Randomized, Sinusoidal
from posenc.inspection.order import order_effect
from posenc.transformer import Encoder

X = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
ORDER = [3, 0, 4, 1, 2]


def encoder(positional: Positional, **options) -> Encoder:
    torch.manual_seed(0)
    return Encoder(16, 2, 2, positional=positional, **options).double().eval()


def test_without_positions_a_permutation_goes_through():
    effect = order_effect(encoder(Positional()), X, ORDER)
    assert effect.attention_difference < 1e-12
    assert effect.output_difference < 1e-12


@pytest.mark.parametrize("positional", [Positional(Sinusoidal(16)), Positional(scores=ALiBi(2))])
def test_with_positions_it_does_not(positional):
    made = encoder(positional)
    effect = order_effect(made, X, ORDER)
    assert effect.attention_difference > 1e-3
    assert effect.output_difference > 1e-3
    assert torch.equal(order_effect(made, X, torch.tensor(ORDER)).reordered, effect.reordered)
    same = order_effect(made, X, range(5))
    assert same.attention_difference == same.output_difference == 0.0
    assert torch.equal(same.weights, same.reordered)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"is_causal": True}, "causal"),
        ({"window": 2}, "window"),
        ({"positional": Positional(positions=Randomized(9))}, "drawn positions"),
    ],
)
def test_what_orders_tokens_besides_an_encoding_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        order_effect(encoder(**{"positional": Positional(), **options}), X, ORDER)


def test_dropout_and_what_is_no_order_are_refused():
    made = encoder(Positional(), dropout=0.5)
    with pytest.raises(ValueError, match="order is"):
        order_effect(made, X, [0, 0, 1, 2, 3])
    made.blocks[0].train()
    with pytest.raises(ValueError, match="training"):
        order_effect(made, X, ORDER)
