"""Encodings that read the hidden state, from the arguments of attention to the encoding."""

import pytest
import torch

import posenc
from posenc import Positional, RelativeLogits
from posenc.testing.reference import reference_attention

HEADS, DIM, SEQ = 2, 6, 7


@pytest.fixture
def logits():
    torch.manual_seed(0)
    return RelativeLogits(HEADS, DIM, width=3, extent=4, std=1.0)


def content(seq: int = SEQ):
    generator = torch.Generator().manual_seed(seq)
    q, k, v = torch.randn(3, 2, HEADS, seq, 4, generator=generator)
    return q, k, v, torch.randn(2, seq, DIM, generator=generator)


def test_attention_is_its_definition(logits):
    q, k, v, x = content()
    positional, here = Positional(scores=logits), torch.arange(SEQ)
    got = posenc.attention(q, k, v, is_causal=True, positional=positional, q_hidden=x, k_hidden=x)
    want = reference_attention(
        q, k, v, positional=positional.double(), q_positions=here, k_positions=here,
        visible=lambda row, i, j: j <= i, q_hidden=x, k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=1e-5)


def test_some_queries_take_their_own_hidden_state(logits):
    q, k, v, x = content()
    positional = Positional(scores=logits)
    whole = posenc.attention(q, k, v, positional=positional, q_hidden=x, k_hidden=x)
    rows = torch.tensor([5, 2])
    part = posenc.attention(
        q[:, :, rows], k, v, positional=positional, q_positions=rows,
        k_positions=torch.arange(SEQ), q_hidden=x[:, rows], k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(part, whole[:, :, rows])


def test_what_stands_in_padding_does_not_matter(logits):
    q, k, v, x = content()
    real = torch.ones(2, SEQ, dtype=torch.bool)
    real[0, :3] = False
    positional, spoilt = Positional(scores=logits), x.masked_fill(~real.unsqueeze(-1), torch.nan)
    want, got = (
        posenc.attention(
            q, k, v, is_causal=True, positional=positional, padding_mask=real, q_hidden=each,
            k_hidden=each,
        )
        for each in (x, spoilt)
    )  # fmt: skip
    assert torch.equal(got[0, :, 3:], want[0, :, 3:])


def test_gradients_reach_the_hidden_state(logits):
    q, k, v, x = content()
    x.requires_grad_()
    positional = Positional(scores=logits)
    posenc.attention(q, k, v, positional=positional, q_hidden=x, k_hidden=x).sum().backward()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("given", [[], ["q_hidden"], ["k_hidden"]])
def test_a_hidden_state_that_is_missing_is_told(logits, given):
    q, k, v, x = content()
    with pytest.raises(ValueError, match="_hidden was not given"):
        posenc.attention(q, k, v, positional=Positional(scores=logits), **dict.fromkeys(given, x))
