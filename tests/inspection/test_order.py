"""Two orders of the same tokens: what a model without positions cannot tell apart."""

import numpy as np
import pytest
import torch

from posenc import ALiBi, Positional, Sinusoidal
from posenc.inspection.order import order_effect
from posenc.transformer import Encoder


def encoder(positional: Positional) -> Encoder:
    torch.manual_seed(0)
    return Encoder(16, 2, 2, positional=positional).double().eval()


X = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
ORDER = [3, 0, 4, 1, 2]


def test_without_positions_a_permutation_goes_through():
    effect = order_effect(encoder(Positional()), X, ORDER)
    assert effect.attention_difference < 1e-12
    assert effect.output_difference < 1e-12


@pytest.mark.parametrize(
    "positional",
    [Positional(Sinusoidal(16)), Positional(scores=ALiBi(2))],
    ids=["tokens", "scores"],
)
def test_with_positions_it_does_not(positional):
    effect = order_effect(encoder(positional), X, ORDER)
    assert effect.attention_difference > 1e-3
    assert effect.output_difference > 1e-3


@pytest.mark.parametrize("kind", [torch.tensor, np.array, tuple], ids=["torch", "numpy", "tuple"])
def test_an_order_of_any_whole_numbers_is_one(kind):
    made = encoder(Positional(Sinusoidal(16)))
    one, other = (order_effect(made, X, order) for order in (ORDER, kind(ORDER)))
    assert torch.equal(one.reordered, other.reordered)
    assert one.output_difference == other.output_difference
    with pytest.raises(ValueError, match=r"order is \[0, 0, 1, 2, 3\]; it must name each of 5"):
        order_effect(made, X, kind([0, 0, 1, 2, 3]))


def test_the_same_order_changes_nothing():
    effect = order_effect(encoder(Positional(Sinusoidal(16))), X, range(5))
    assert effect.attention_difference == effect.output_difference == 0.0
    assert torch.equal(effect.weights, effect.reordered)


def test_what_is_no_order_is_refused():
    with pytest.raises(ValueError, match=r"order is \[0, 0\]; it must name each of 5 tokens once"):
        order_effect(encoder(Positional()), X, [0, 0])
