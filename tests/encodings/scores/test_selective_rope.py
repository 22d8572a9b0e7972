"""Selective RoPE: the authors' module in float64, rotary where every token turns alike, caches."""

import pytest
import torch
from torch.nn import functional as F

from posenc import Rotary, SelectiveRoPE
from posenc.frequencies import Geometric
from posenc.positions import consecutive

HEADS, WIDTH, DIM, SEQ = 2, 6, 8, 7


def content(seq=SEQ):
    torch.manual_seed(1)
    x = torch.randn(2, seq, DIM).double()
    q, k = torch.randn(2, 2, HEADS, seq, WIDTH).double().unbind()
    return x, q, k


def scored(of, q, k, x, *places):
    return of(q @ k.mT, *places, q=q, k=k, q_hidden=x, k_hidden=x).detach()


def authors(of, x, q, k):
    """Line by line as the authors' module, for heads that come last but one."""
    parts = x.unflatten(-1, (HEADS, -1))
    x = (parts / (parts.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()).flatten(-2)
    phi = F.linear(F.linear(x, of.down), of.up).mT
    phi = F.conv1d(F.pad(phi, (of.kernel - 1, 0)), of.convolution[:, None], groups=phi.shape[1])
    phi = phi.mT.unflatten(-1, (HEADS, WIDTH // 2))
    if of.bias is not None:
        phi = phi + torch.exp(of.bias)
    if of.gate is not None:
        phi = phi * F.linear(x, of.gate, of.gate_bias).sigmoid().unsqueeze(-1)
    temperature = 1.0 / (500.0 ** (torch.arange(0, WIDTH, 2).double() / WIDTH))
    angle = temperature * torch.cumsum(phi, dim=1)
    turned = []
    for each in (q.transpose(1, 2), k.transpose(1, 2)):
        first, second = each[..., : WIDTH // 2], each[..., WIDTH // 2 :]
        cos, sin = angle.cos(), angle.sin()
        both = (first * cos - second * sin, first * sin + second * cos)
        turned.append(torch.cat(both, dim=-1).transpose(1, 2))
    return turned


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("rotated", ["prefix", "suffix"])
def test_where_every_token_turns_alike_it_is_rotary(pairing, rotated):
    rotary = Rotary(Geometric(4), head_dim=WIDTH, pairing=pairing, rotated=rotated)
    of, (x, q, k) = SelectiveRoPE(HEADS, rotary, DIM, bias=True).double(), content()
    torch.nn.init.zeros_(of.up)  # φ = 0, and exp(b) = 1
    table = rotary.table(consecutive(SEQ), dtype=torch.float64)
    want = rotary.encode_queries(q, table) @ rotary.encode_keys(k, table).mT / WIDTH**0.5
    torch.testing.assert_close(scored(of, q, k, x), want, rtol=1e-9, atol=1e-9)
    by_pairs = torch.func.vmap(lambda q, k, x: scored(of, q, k, x))(q, k, x)
    torch.testing.assert_close(by_pairs, want, rtol=1e-9, atol=1e-9)
