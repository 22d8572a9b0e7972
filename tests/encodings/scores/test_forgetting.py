"""Forgetting against a loop, recurrent decay, and ALiBi as its limit."""

import torch

from posenc import Forgetting, forgetting_bias

HEADS, WIDTH = 4, 8


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_it_is_the_decay_of_a_recurrence():
    # What a sum of exp(q·k) remembers, if each step multiplies it by f.
    gates, scores = random(9).sigmoid(), random(9, 9)
    biased = scores + forgetting_bias(gates.log().unsqueeze(0))[0]
    for i in range(9):
        total = torch.zeros((), dtype=torch.float64)
        for at in range(i + 1):
            total = gates[at] * total + scores[i, at].exp()
        torch.testing.assert_close(biased[i, : i + 1].exp().sum(), total)


def test_the_encoding_gates_by_keys_with_fewer_key_heads():
    forgetting = Forgetting(HEADS, WIDTH, std=1.0, bias=0.5).double()
    k, scores = random(2, 2, 6, WIDTH), random(2, HEADS, 6, 6, seed=1)
    got = forgetting(scores, k=k)
    for head in range(HEADS):
        gates = k[:, head // 2] @ forgetting.weight[head] + forgetting.bias[head]
        want = scores[:, head] + forgetting_bias(gates.sigmoid().log().unsqueeze(1))[:, 0]
        torch.testing.assert_close(got[:, head], want)
