"""Biases that a plain function of distance gives."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from posenc import ALiBi, Positional, attention
from posenc.encodings.bias import RelativeBias
from posenc.testing import Case, battery

STEEP = nn.Parameter(torch.tensor([[0.5], [0.25], [0.125], [0.0625]]))


def by_global(heads):
    return RelativeBias.of(lambda distance: -STEEP * distance.abs(), heads)


class Learned(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(9, 4)

    def forward(self, distance):
        return self.rows(distance.clamp(-4, 4) + 4).mT


ASKED = ("shape_and_dtype", "content_is_left_alone", "casts", "prefill_equals_decoding")


def test_it_keeps_the_contract():
    checks = battery(Case(lambda heads: RelativeBias.of(Learned(), heads), {"heads": 4}))
    for check in (each for each in checks if each.name in ASKED):
        check()


@pytest.mark.parametrize("backend", ["dense", "strided", "flex"])
def test_it_is_the_bias_of_the_class(backend):
    slopes = torch.tensor(ALiBi(4).slopes)[:, None]
    ours = RelativeBias.of(lambda distance: -slopes * distance.abs(), heads=4)
    q, k, v = torch.randn(3, 2, 4, 9, 8).unbind()
    made, want = (
        attention(q, k, v, positional=Positional(scores=bias), is_causal=True, backend=backend)
        for bias in (ours, ALiBi(4))
    )
    assert torch.allclose(made, want, atol=1e-5)


def test_a_copy_learns_by_itself():
    bias = by_global(4)
    copied = deepcopy(bias)
    (own,) = copied.parameters()
    with torch.no_grad():
        own.fill_(3)
    assert copied.profile([2]).flatten().tolist() == [-6.0] * 4
    assert bias.profile([2])[0] == -1.0
