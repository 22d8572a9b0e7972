"""Swin V2's continuous bias against transformers' attention, and across window sizes."""

import math

import pytest
import torch
from torch.nn import functional as F
from transformers import Swinv2Config
from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

from posenc import SwinV2Bias
from posenc.positions import grid

WINDOWS = [((8, 8), 0), ((4, 6), 0), ((12, 12), 8), ((1, 1), 0), ((16, 16), 12)]


def theirs_of(window, pretrained):
    torch.manual_seed(0)
    return Swinv2SelfAttention(Swinv2Config(), 24, 3, window, [pretrained, pretrained]).eval()


def ours_of(theirs, window, pretrained):
    ours = SwinV2Bias(3, window, pretrained_window=pretrained or None)
    ours.mlp.load_state_dict(theirs.continuous_position_bias_mlp.state_dict())
    return ours


@pytest.mark.parametrize(("window", "pretrained"), WINDOWS)
def test_attention_is_that_of_transformers(window, pretrained):
    theirs = theirs_of(window, pretrained)
    points, x = grid(*window), torch.randn(2, math.prod(window), 24)
    q, k = (
        F.normalize(map_(x).unflatten(-1, (3, 8)).transpose(1, 2), dim=-1)
        for map_ in (theirs.query, theirs.key)
    )
    scores = q @ k.mT * theirs.logit_scale.clamp(max=math.log(100)).exp()
    weights = ours_of(theirs, window, pretrained)(scores, points, points).softmax(-1)
    torch.testing.assert_close(weights, theirs(x, output_attentions=True)[1], atol=2e-6, rtol=1e-5)


def test_a_larger_window_keeps_the_biases_of_the_displacements_it_knows():
    swin = SwinV2Bias(2, 8, hidden=16)
    larger, points = swin.resized(12), grid(8, 8)
    torch.testing.assert_close(larger.table(points, points), swin.table(points, points))
    assert larger.resized(8).pretrained_window == (8, 8)
