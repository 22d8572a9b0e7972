"""Encodings that read the hidden state, from the arguments of attention to the encoding."""

import pytest
import torch

from posenc import Positional, RelativeLogits, attention
from posenc.testing.reference import reference_attention

HEADS, DIM, SEQ = 2, 6, 7


@pytest.fixture
def positional():
    torch.manual_seed(0)
    return Positional(scores=RelativeLogits(HEADS, DIM, width=3, extent=4, std=1.0))


def content():
    generator = torch.Generator().manual_seed(SEQ)
    q, k, v = torch.randn(3, 2, HEADS, SEQ, 4, generator=generator)
    return q, k, v, torch.randn(2, SEQ, DIM, generator=generator)


def test_attention_is_its_definition(positional):
    *qkv, x = content()
    got = attention(*qkv, is_causal=True, positional=positional, q_hidden=x, k_hidden=x)
    want = reference_attention(
        *qkv, positional=positional.double(), q_positions=torch.arange(SEQ),
        k_positions=torch.arange(SEQ), visible=lambda row, i, j: j <= i, q_hidden=x, k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=1e-5)


def test_some_queries_take_their_own_hidden_state(positional):
    q, k, v, x = content()
    whole = attention(q, k, v, positional=positional, q_hidden=x, k_hidden=x)
    rows = torch.tensor([5, 2])
    part = attention(
        q[:, :, rows], k, v, positional=positional, q_positions=rows,
        k_positions=torch.arange(SEQ), q_hidden=x[:, rows], k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(part, whole[:, :, rows])


@pytest.mark.parametrize("given", [[], ["q_hidden"], ["k_hidden"]])
def test_a_hidden_state_that_is_missing_is_told(positional, given):
    *qkv, x = content()
    with pytest.raises(ValueError, match="_hidden was not given"):
        attention(*qkv, positional=positional, **dict.fromkeys(given, x))
