"""CABLE against its sum, written out, and against the code of its authors."""

import pytest
import torch
from torch.nn import functional as F

import posenc
from posenc import CABLE, Forgetting, Positional, forgetting_bias
from posenc.positions import left_padded, packed
from posenc.transformer import Encoder, KeyValueCache

HEADS, DIM = 3, 5


@pytest.fixture
def cable(drawn):
    return drawn(CABLE(HEADS, DIM))


def hidden(seq: int = 7) -> torch.Tensor:
    return torch.randn(2, seq, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def bias_of(cable: CABLE, x: torch.Tensor, *positions) -> torch.Tensor:
    seq = x.shape[-2]
    return cable(
        torch.zeros(len(x), HEADS, seq, seq).double(), *positions, q_hidden=x, k_hidden=x
    ).detach()


def test_it_is_the_sum_token_by_token(cable):
    x = hidden()
    got = bias_of(cable, x)
    for head in range(HEADS):
        said = [F.softplus(x[0, at] @ cable.weight[head] + cable.bias[head]) for at in range(7)]
        for i in range(7):
            for j in range(7):
                want = -sum(said[j + 1 : i + 1], start=torch.zeros(()).double())
                torch.testing.assert_close(got[0, head, i, j], want.detach())


def test_it_is_the_code_of_the_authors(cable):
    x = hidden()
    cumulated = torch.cumsum(-F.softplus(F.linear(x, cable.weight, cable.bias)), dim=1)
    cumulated = cumulated.permute(0, 2, 1)
    want = (cumulated.unsqueeze(3) - cumulated.unsqueeze(2)).detach()
    torch.testing.assert_close(bias_of(cable, x).tril(), want.tril())


def test_it_forgets_with_the_sign_of_the_gate_turned(cable):
    x = hidden()
    log_forget = F.logsigmoid(-F.linear(x, cable.weight, cable.bias)).mT
    torch.testing.assert_close(bias_of(cable, x), forgetting_bias(log_forget).detach())


def test_where_keys_are_the_hidden_state_it_is_forgetting(cable):
    x = hidden()
    forgetting = Forgetting(HEADS, DIM).double()
    forgetting.load_state_dict({"weight": -cable.weight, "bias": -cable.bias})
    got = forgetting(torch.zeros(2, HEADS, 7, 7).double(), k=x.unsqueeze(1))
    torch.testing.assert_close(bias_of(cable, x), got.detach())


def test_packed_and_padded_rows_cumulate_each_document_alone(cable):
    x = hidden()
    alone = bias_of(cable, x[:, 3:]).tril()
    mask = torch.tensor([False] * 3 + [True] * 4)
    for positions in (packed([3, 4]), left_padded(mask)):
        together = bias_of(cable, x, positions, positions)
        torch.testing.assert_close(together[..., 3:, 3:].tril(), alone)


def test_attention_takes_documents_apart(cable):
    x = hidden()
    q, k, v = torch.randn(3, 2, HEADS, 7, 4, dtype=torch.float64)
    positional, ids = Positional(scores=cable), torch.tensor([0, 0, 0, 1, 1, 1, 1]).expand(2, -1)
    whole = posenc.attention(
        q, k, v, is_causal=True, positional=positional, q_hidden=x, k_hidden=x, document_ids=ids
    )
    q, k, v, x = (each[..., 3:, :] for each in (q, k, v, x))
    alone = posenc.attention(q, k, v, is_causal=True, positional=positional, q_hidden=x, k_hidden=x)
    torch.testing.assert_close(whole[..., 3:, :], alone)


@pytest.mark.parametrize("size", [None, 12])
def test_decoding_behind_a_cache_is_the_whole_pass(cable, size):
    torch.manual_seed(0)
    positional = Positional(scores=cable)
    encoder = Encoder(DIM, HEADS, 2, positional=positional, head_dim=4, is_causal=True).double()
    x, cache = hidden(), KeyValueCache(size)
    with torch.no_grad():
        steps = [encoder.eval()(x[:, :3], cache=cache)]
        steps += [encoder(x[:, i : i + 1], cache=cache) for i in range(3, 7)]
        torch.testing.assert_close(torch.cat(steps, dim=1), encoder(x))


def test_a_cropped_and_reordered_cache_keeps_what_was_read(cable):
    torch.manual_seed(0)
    positional = Positional(scores=cable)
    encoder = Encoder(DIM, HEADS, 1, positional=positional, head_dim=4, is_causal=True).double()
    x, turned = hidden(), torch.tensor([1, 0])
    with torch.no_grad():
        for size in (None, 12):
            cache = KeyValueCache(size)
            encoder.eval()(x, cache=cache)
            cache.crop(4)
            cache.reorder(turned)
            steps = [encoder(x[turned, i : i + 1], cache=cache) for i in range(4, 7)]
            torch.testing.assert_close(torch.cat(steps, dim=1), encoder(x[turned])[:, 4:])
