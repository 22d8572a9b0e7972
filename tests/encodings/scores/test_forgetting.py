"""Forgetting against a loop, recurrent decay, and ALiBi as its limit."""

import torch
from torch.nn import functional as F

from posenc import ALiBi, Forgetting, Positional, attention, forgetting_bias
from posenc.positions import consecutive, decoding, left_padded, packed

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


def test_it_is_a_difference_of_cumulative_sums():
    # The form of flash-linear-attention: c_i − c_j with c the inclusive cumulative sum.
    log_f = F.logsigmoid(random(HEADS, 50))
    c = log_f.cumsum(-1)
    want = (c.unsqueeze(-1) - c.unsqueeze(-2)).tril()
    torch.testing.assert_close(forgetting_bias(log_f), want)


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


def test_gates_that_never_forget_change_nothing():
    forgetting = Forgetting(HEADS, WIDTH, bias=800.0).double()
    scores = random(1, HEADS, 6, 6)
    assert torch.equal(forgetting(scores, k=random(1, HEADS, 6, WIDTH)), scores)


def test_a_decoded_row_is_the_last_row():
    forgetting = Forgetting(HEADS, WIDTH, std=1.0).double()
    scores, k = random(1, HEADS, 7, 7), random(1, 2, 7, WIDTH)
    row = forgetting(scores[..., -1:, :], decoding(6), consecutive(7), k=k)
    torch.testing.assert_close(row, forgetting(scores, k=k)[..., -1:, :])


def test_packed_and_padded_rows_forget_each_document_alone():
    forgetting = Forgetting(HEADS, WIDTH, std=1.0).double()
    scores, k = random(1, HEADS, 7, 7), random(1, 2, 7, WIDTH)
    alone = forgetting(scores[..., 3:, 3:], k=k[..., 3:, :])
    mask = torch.tensor([False] * 3 + [True] * 4)
    for positions in (packed([3, 4]), left_padded(mask)):
        together = forgetting(scores, positions, positions, k=k)
        torch.testing.assert_close(together[..., 3:, 3:], alone)


def test_attention_takes_it():
    q, k = random(1, HEADS, 6, WIDTH), random(1, 2, 6, WIDTH, seed=1)
    forgetting = Forgetting(HEADS, WIDTH, std=1.0).double()
    got = attention(q, k, k, positional=Positional(scores=forgetting), is_causal=True)
    mask = forgetting_bias(forgetting.log_forget(k))
    torch.testing.assert_close(got, attention(q, k, k, mask, is_causal=True))
