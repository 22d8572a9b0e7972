"""Windows, scales and widths of heads; positions that are changed before any encoding."""

import pytest
import torch
from torch.testing import assert_close

from posenc import (
    SHAPE,
    ALiBi,
    PoSE,
    Positional,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
    positions,
)
from posenc.transformer import Block, Encoder, KeyValueCache, MultiHeadAttention

CLOSE = {"atol": 1e-12, "rtol": 0}


def doubled(**arguments) -> Encoder:
    torch.manual_seed(0)
    return Encoder(16, 4, 3, is_causal=True, **arguments).double().eval()


def content(batch=2, seq=9):
    return torch.randn(batch, seq, 16, dtype=torch.float64)


def test_a_window_is_what_a_mask_of_neighbors_is():
    attention, x = MultiHeadAttention(16, 4, window=3).double(), content()
    plain = MultiHeadAttention(16, 4).double()
    plain.load_state_dict(attention.state_dict())
    here = torch.arange(9)
    near = (here[:, None] - here).abs() < 3
    assert_close(attention(x), plain(x, attn_mask=near), **CLOSE)
    assert_close(attention(x, is_causal=True), plain(x, attn_mask=near, is_causal=True), **CLOSE)
    assert_close(attention.stages(x).output, attention(x), **CLOSE)
    block = Block(16, 4, window=3, head_dim=6, scale=0.2)
    assert (block.attention.window, block.attention.head_dim, block.attention.scale) == (3, 6, 0.2)


@pytest.mark.parametrize("scores", [(), ALiBi(4)], ids=["none", "alibi"])
def test_windows_may_differ_by_layer(scores):
    """A token sees w − 1 tokens back in each layer: beyond their sum nothing reaches it."""
    positional = Positional(scores=scores)
    encoder, x = doubled(positional=positional, window=[2, 3, None]), content(1, 12)
    local = doubled(positional=positional, window=[2, 3, 1])
    local.load_state_dict(encoder.state_dict())
    changed = x.clone()
    changed[:, 0] += 1
    moved = (local(changed) != local(x)).any(-1)[0]
    assert moved.tolist() == [True] * 4 + [False] * 8  # 1 + 2 + 0 tokens on
    assert (encoder(changed) != encoder(x)).any(-1).all()
    assert_close(encoder.stages(x).output, encoder(x), **CLOSE)


@pytest.mark.parametrize("window", [4, [None, 2, 5]])
def test_windows_count_positions_behind_padding_in_packing_and_in_decoding(window):
    positional = Positional(queries_keys=Rotary(4), scores=ALiBi(4))
    encoder = doubled(positional=positional, window=window)
    x = content(1, 9)
    alone = encoder(x[:, 3:])
    real = torch.ones(1, 9, dtype=torch.bool)
    real[0, :3] = False
    assert_close(encoder(x, padding_mask=real)[:, 3:], alone, **CLOSE)
    ids = torch.tensor([[0] * 3 + [1] * 6])
    assert_close(encoder(x, document_ids=ids)[:, 3:], alone, **CLOSE)
    cache = KeyValueCache()
    steps = [encoder(x[:, i : i + 1], cache=cache) for i in range(3, 9)]
    assert_close(torch.cat(steps, 1), alone, **CLOSE)


def test_the_scale_of_t5_reaches_what_depends_on_content():
    x = content(1, 5)
    shaw = Positional(scores=Shaw(4, 4, 3, std=1.0))
    one, other = doubled(positional=shaw, scale=1.0), doubled(positional=shaw)
    stages = one.stages(x).blocks[0].attention
    table = shaw.scores[0].table(torch.arange(5), torch.arange(5))
    want = torch.einsum(
        "bhqd,qkd->bhqk", stages.encoded_queries, shaw.scores[0].keys[3 - table.clamp(-3, 3)]
    )
    seen = stages.encoded_scores - stages.scores
    visible = seen.isfinite()
    assert_close(seen[visible], want.expand_as(seen)[visible], **CLOSE)
    assert not torch.allclose(one(x), other(x))


@pytest.mark.parametrize("remapping", [SHAPE(1000), PoSE(400)], ids=["shape", "pose"])
def test_changes_for_training_act_in_training_alone(remapping):
    positional = Positional(Sinusoidal(16), Rotary(4), T5Bias(4, std=1.0), positions=remapping)
    still = Positional(positional.tokens, positional.queries_keys, positional.scores)
    encoder, x = doubled(positional=positional), content()
    plain = doubled(positional=still)
    plain.load_state_dict(encoder.state_dict())
    assert_close(encoder(x), plain(x), **CLOSE)
    torch.manual_seed(1)
    made = encoder.train()(x)
    torch.manual_seed(1)
    placed = remapping(positions.consecutive(9))
    assert not torch.equal(placed, torch.arange(9))
    assert_close(made, plain(x, placed), **CLOSE)
