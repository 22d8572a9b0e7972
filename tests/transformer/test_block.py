"""A block in both orders, against the equations and against torch."""

import pytest
import torch
from torch.testing import assert_close

from posenc.transformer import Block


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_stages_are_its_forward(norm):
    block = Block(16, 4, norm=norm, kv_heads=2, activation="gelu").double()
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    stages = block.stages(x, is_causal=True)
    assert_close(block(x, is_causal=True), stages.output, atol=1e-12, rtol=0)
    assert_close(stages.attention_sum, x + stages.attention.output)


def test_post_norm_normalizes_sums_and_pre_norm_does_not():
    x = 5 * torch.randn(2, 5, 16)
    post, pre = (Block(16, 4, norm=norm)(x) for norm in ("post", "pre"))
    assert_close(post.mean(-1), torch.zeros(2, 5), atol=1e-5, rtol=0)
    assert pre.mean(-1).abs().max() > 0.1


def test_dropout_falls_only_while_training():
    block, x = Block(16, 4, dropout=0.3), torch.randn(1, 5, 16)
    assert not torch.equal(block(x), block(x))
    assert torch.equal(block.eval()(x), block(x))
