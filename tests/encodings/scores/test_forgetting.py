"""Forgetting against a loop, recurrent decay, and ALiBi as its limit."""

import torch
from torch.nn import functional as F

from posenc import ALiBi, Forgetting, attention, forgetting_bias
from posenc.positions import consecutive

HEADS, WIDTH = 4, 8


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_bias_is_the_sum_between():
    log_f = F.logsigmoid(random(2, HEADS, 9))
    got = forgetting_bias(log_f)
    for i in range(9):
        for j in range(i + 1):
            want = log_f[..., j + 1 : i + 1].sum(-1)
            torch.testing.assert_close(got[..., i, j], want)
    assert (got.triu() == 0).all()


def test_it_is_the_decay_of_a_recurrence():
    # What a sum of exp(q·k) remembers, if each step multiplies it by f.
    gates, scores = random(9).sigmoid(), random(9, 9)
    biased = scores + forgetting_bias(gates.log().unsqueeze(0))[0]
    for i in range(9):
        total = torch.zeros((), dtype=torch.float64)
        for at in range(i + 1):
            total = gates[at] * total + scores[i, at].exp()
        torch.testing.assert_close(biased[i, : i + 1].exp().sum(), total)


def test_constant_gates_are_alibi():
    slopes = torch.tensor(ALiBi(HEADS).slopes).double()
    log_f = -slopes.unsqueeze(-1).expand(HEADS, 12)
    alibi = ALiBi(HEADS, is_causal=True).table(
        consecutive(12), consecutive(12), dtype=torch.float64
    )
    torch.testing.assert_close(forgetting_bias(log_f), alibi)


def test_a_models_own_gates_go_in_as_a_mask():
    q, v = random(1, HEADS, 6, WIDTH), random(1, HEADS, 6, WIDTH, seed=1)
    bias = forgetting_bias(F.logsigmoid(random(1, HEADS, 6, seed=2)))
    got = attention(q, q, v, attn_mask=bias, is_causal=True)
    scores = q @ q.mT / WIDTH**0.5 + bias + torch.full((6, 6), -torch.inf).triu(1)
    torch.testing.assert_close(got, scores.softmax(-1) @ v)


def test_the_encoding_gates_by_keys_with_fewer_key_heads():
    forgetting = Forgetting(HEADS, WIDTH, std=1.0, bias=0.5).double()
    k, scores = random(2, 2, 6, WIDTH), random(2, HEADS, 6, 6, seed=1)
    got = forgetting(scores, k=k)
    for head in range(HEADS):
        gates = k[:, head // 2] @ forgetting.weight[head] + forgetting.bias[head]
        want = scores[:, head] + forgetting_bias(gates.sigmoid().log().unsqueeze(1))[:, 0]
        torch.testing.assert_close(got[:, head], want)
