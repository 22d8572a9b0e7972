"""The feed-forward layer: the same two maps for every token."""

import pytest
import torch
from torch import nn

from posenc.transformer import FeedForward


def test_shapes_of_the_worked_example(worked):
    sizes = worked["feed_forward_shapes"]
    layer = FeedForward(sizes["d"], sizes["inner"])
    stages = layer.stages(torch.randn(1, 6, sizes["d"]))
    assert stages.inner.shape == stages.activated.shape == (1, 6, 64)
    assert stages.output.shape == (1, 6, 16)
    assert layer.expand.weight.shape == (64, 16)
    assert layer.contract.weight.shape == (16, 64)


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


def test_dropout_falls_only_while_training():
    layer, x = FeedForward(8, 20, dropout=0.5), torch.randn(4, 8)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))
