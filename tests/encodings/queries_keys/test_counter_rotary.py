"""CounterRotary: DeepSeek V4's attention by transformers' own rotation, and relative throughout."""

import pytest
import torch
from torch.nn import functional as F
from transformers.models.deepseek_v4.modeling_deepseek_v4 import apply_rotary_pos_emb

from posenc import CounterRotary, Positional, Rotary, attention
from posenc.positions import consecutive

DIM, TURNED = 12, 8


@pytest.fixture
def counter():
    return CounterRotary(Rotary(TURNED, head_dim=DIM, pairing="interleaved", rotated="suffix"))


def deepseek(q, kv, positions):
    """One vector for key and value, rotated; the output turned back by the conjugate."""
    angles = positions[None, :, None] * 10_000.0 ** -(torch.arange(0, TURNED, 2) / TURNED).double()
    cos, sin = angles.cos(), angles.sin()
    q, kv = apply_rotary_pos_emb(q, cos, sin), apply_rotary_pos_emb(kv, cos, sin)
    kv = kv.expand(-1, q.shape[1], -1, -1)
    out = F.scaled_dot_product_attention(q, kv, kv, is_causal=True)
    return apply_rotary_pos_emb(out, cos, -sin), kv[:, :1]


def test_it_is_the_attention_of_deepseek_v4(counter):
    torch.manual_seed(0)
    q, kv = torch.randn(2, 4, 9, DIM), torch.randn(2, 1, 9, DIM)
    want, cached = deepseek(q, kv, consecutive(9))
    positional = Positional(queries_keys=counter)
    got = attention(q, kv, kv, is_causal=True, positional=positional)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    kept = attention(q, cached, cached, is_causal=True, positional=positional, keys_encoded=True)
    torch.testing.assert_close(kept, want, rtol=1e-4, atol=1e-5)
