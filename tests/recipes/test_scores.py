"""Recipes for attention scores, against the modules of the models that they are named after."""

import math

import torch
from torch.nn import functional as F
from transformers import SwinConfig, Swinv2Config
from transformers.models.swin.modeling_swin import SwinAttention
from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

from posenc import attention, recipes
from posenc.positions import grid


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def test_swin_in_attention_is_the_models():
    torch.manual_seed(0)
    config, points = SwinConfig(), grid(7, 7)
    theirs = SwinAttention(config, 96, 3, config.window_size).eval()
    table = theirs.relative_position_bias.relative_position_bias_table
    torch.nn.init.normal_(table)
    ours, x = recipes.swin(3), torch.randn(2, 49, 96)
    ours.scores[0].load_state_dict({"weight": table})
    q, k, v = (heads_of(m(x), 3) for m in (theirs.q_proj, theirs.k_proj, theirs.v_proj))
    got = attention(q, k, v, positional=ours, q_positions=points[None], k_positions=points[None])
    got = theirs.o_proj(got.transpose(1, 2).flatten(-2))
    torch.testing.assert_close(got, theirs(x)[0], atol=1e-5, rtol=1e-5)


def test_swin_v2_in_attention_is_the_models():
    torch.manual_seed(0)
    theirs = Swinv2SelfAttention(Swinv2Config(), 96, 3, 8).eval()
    with torch.no_grad():
        theirs.logit_scale.fill_(1.5)
    ours, x, points = recipes.swin_v2(3), torch.randn(2, 64, 96), grid(8, 8)
    ours.scores[0].mlp.load_state_dict(theirs.continuous_position_bias_mlp.state_dict())
    q, k = (F.normalize(heads_of(m(x), 3), dim=-1) for m in (theirs.query, theirs.key))
    v = heads_of(theirs.value(x), 3)
    got = attention(
        q,
        k,
        v,
        positional=ours,
        q_positions=points[None],
        k_positions=points[None],
        scale=math.exp(1.5),
    )
    torch.testing.assert_close(got.transpose(1, 2).flatten(-2), theirs(x)[0], atol=1e-5, rtol=1e-5)
