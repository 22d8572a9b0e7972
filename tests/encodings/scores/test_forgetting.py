"""Forgetting against a loop, recurrent decay, and ALiBi as its limit."""

import torch
from tests.encodings.content import wide as random

from posenc import forgetting_bias


def test_it_is_the_decay_of_a_recurrence():
    # What a sum of exp(q·k) remembers, if each step multiplies it by f.
    gates, scores = random(9).sigmoid(), random(9, 9)
    biased = scores + forgetting_bias(gates.log().unsqueeze(0))[0]
    for i in range(9):
        total = torch.zeros((), dtype=torch.float64)
        for at in range(i + 1):
            total = gates[at] * total + scores[i, at].exp()
        torch.testing.assert_close(biased[i, : i + 1].exp().sum(), total)
