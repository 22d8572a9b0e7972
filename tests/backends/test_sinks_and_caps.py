"""Sinks and soft capping, beside what the goldens hold of them."""

import pytest
import torch

from posenc import attention

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 2, 4, 2, 40, 8


def content(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(BATCH, heads, SEQ, WIDTH, dtype=torch.float64, generator=generator).to(dtype)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]


def test_a_sink_worked_by_hand():
    """One query, two keys with scores 0, a sink of log 2: weights 1/4, 1/4 and 1/2."""
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.tensor([[[[8.0, 0], [0, 4]]]])
    got = attention(q, k, v, sinks=torch.tensor([2.0]).log(), backend="strided")
    torch.testing.assert_close(got, torch.tensor([[[[2.0, 1.0]]]]))


@pytest.mark.parametrize("sink", [1.0, -torch.inf])
def test_a_row_that_sees_nothing_gives_nothing_and_learns_nothing(sink):
    """All weight is its sink's, or no one's where that is −∞ too."""
    qkv, real = [x.requires_grad_() for x in content()], torch.ones(BATCH, SEQ, dtype=torch.bool)
    real[0] = False
    sinks = torch.full((HEADS,), sink, dtype=torch.float64).requires_grad_()
    out = attention(
        *qkv, sinks=sinks, padding_mask=real, q_padding_mask=real | True, backend="strided"
    )
    assert not out[0].any()
    for grad in torch.autograd.grad(out[0].sum(), (*qkv, sinks)):
        assert not grad.any()


@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_beside_content_of_16_bits_sinks_learn_in_float32(dtype, softcap):
    narrow = content(dtype)

    def learned(backend, to, own):
        own.requires_grad_()
        out = attention(*(x.to(to) for x in narrow), sinks=own, softcap=softcap, backend=backend)
        return torch.autograd.grad(out.double().sin().sum(), own)[0]

    some = torch.tensor([-1.0, 0.0, 1.0, 4.0])
    got, want = learned("strided", dtype, some), learned("explicit", torch.float64, some.double())
    torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("backend", ["explicit", "dense", "strided", "flex"])
@torch.no_grad()
def test_an_infinite_sink_takes_all_of_its_head(backend, dtype):
    qkv, sinks = content(dtype), torch.tensor([torch.inf, 0.0, -torch.inf, 1.0])
    got = attention(*qkv, sinks=sinks, backend=backend)
    beside = attention(*qkv, sinks=sinks.clamp(max=2.0), backend=backend)
    assert not got[:, 0].any()
    assert torch.equal(got[:, 1:], beside[:, 1:])
