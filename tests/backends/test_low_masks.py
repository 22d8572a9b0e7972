"""Masks of large numbers, by which many models hide or lift keys: gradients of whole rows."""

import pytest
import torch

from posenc import attention

LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize("number", [LOWEST, -1e9, -1e4, 1e5, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_softmax_where_a_whole_row_has_the_number(number, dtype):
    torch.manual_seed(0)
    qkv = [torch.randn(2, 4, 6, 8, dtype=dtype, requires_grad=True) for _ in range(3)]
    mask = torch.zeros(2, 1, 6, 6, dtype=dtype)
    mask[..., 3:] = number
    mask[1, :, 2] = number  # a token of padding sees padding alone
    q, k, v = qkv
    definition = ((q @ k.mT) / 8**0.5 + mask).softmax(-1) @ v
    want = torch.autograd.grad(definition.square().sum(), qkv)
    for backend in (None, "dense", "explicit"):
        made = attention(*qkv, attn_mask=mask, backend=backend)
        got = torch.autograd.grad(made.square().sum(), qkv)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4, msg=f"{backend}")
