"""Selective RoPE: the authors' module in float64, rotary where every token turns alike, caches."""

import pytest
import torch

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
