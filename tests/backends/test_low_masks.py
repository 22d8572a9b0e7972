"""Masks of large numbers, as many a model hides padding by low ones: gradients of whole rows."""

import pytest
import torch

from posenc import attention

LOW = (torch.finfo(torch.float32).min, -1e9, -1e4)


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_softmax_where_a_whole_row_is_hidden(low, dtype):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.zeros(2, 1, 6, 6, dtype=dtype)
    mask[..., 3:] = low
    mask[1, :, 2] = low  # a token of padding sees padding alone
    definition = ((q @ k.mT) / 8**0.5 + mask).softmax(-1) @ v
    want = torch.autograd.grad(definition.square().sum(), (q, k, v))
    for backend in (None, "dense", "explicit"):
        made = attention(q, k, v, attn_mask=mask, backend=backend)
        for mine, theirs in zip(
            torch.autograd.grad(made.square().sum(), (q, k, v)), want, strict=True
        ):
            assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4), backend


@pytest.mark.parametrize("high", [1e5, 1e9])
def test_gradients_are_those_of_softmax_where_numbers_draw_to_keys(high):
    """Some keys are lifted above all others; among them weights are those of a softmax."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 6, 8, requires_grad=True) for _ in range(3))
    mask = torch.zeros(6, 6)
    mask[:, 2:] = high
    definition = ((q @ k.mT) / 8**0.5 + mask).softmax(-1) @ v
    want = torch.autograd.grad(definition.square().sum(), (q, k, v))
    for backend in (None, "dense", "explicit"):
        made = attention(q, k, v, attn_mask=mask, backend=backend)
        got = torch.autograd.grad(made.square().sum(), (q, k, v))
        for mine, theirs in zip(got, want, strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4), backend
