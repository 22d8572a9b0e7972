"""The feed-forward layer: the same two maps for every token."""

import pytest
import torch
from torch import nn

from posenc.transformer import FeedForward


@pytest.mark.parametrize(("activation", "module"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
def test_it_is_linear_activation_linear(activation, module):
    layer = FeedForward(8, 20, activation)
    x = torch.randn(2, 5, 8)
    sequential = nn.Sequential(layer.expand, module, layer.contract)
    assert torch.equal(layer(x), sequential(x))
    assert torch.equal(layer(x), layer.stages(x).output)


def test_a_function_may_be_the_activation():
    layer = FeedForward(8, 20, torch.tanh)
    x = torch.randn(2, 8)
    assert torch.equal(layer.stages(x).activated, layer.expand(x).tanh())


def test_an_activation_in_place_leaves_what_it_was_given():
    x = torch.randn(2, 3, 8)
    plain, in_place = (FeedForward(8, 16, each) for each in ("relu", torch.nn.ReLU(inplace=True)))
    in_place.load_state_dict(plain.state_dict())
    stages = (vars(each.stages(x)).values() for each in (in_place, plain))
    for got, want in zip(*stages, strict=True):
        assert torch.equal(got, want)
    assert (in_place.stages(x).inner < 0).any()
    assert torch.equal(in_place(x), plain(x))
