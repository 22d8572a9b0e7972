"""PoPE: the paper's sum in mpmath, widths that grow, and every place that must bear it."""

import pytest
import torch
from mpmath import mp, mpf

from posenc import ALiBi, PoPE, Positional, Rotary, attention
from posenc.positions import consecutive
from posenc.testing.reference import reference_attention
from posenc.transformer import Encoder

DIM = 6


@pytest.fixture
def pope():
    torch.manual_seed(0)
    return PoPE(DIM, heads=2, phases="uniform").double()


@pytest.mark.parametrize(("t", "s"), [(3, 0), (0, 5), (2**40 + 1, 2**40 - 9)])
def test_products_are_the_sum_of_the_paper(pope, t, s):
    """Σ softplus(q_c) softplus(k_c) cos((s − t) 10000^(−c/d) + δ_c)"""
    torch.manual_seed(1)
    q, k = torch.randn(2, 1, DIM).double(), torch.randn(2, 1, DIM).double()
    at_t, at_s = (pope.table([p], dtype=torch.float64) for p in (t, s))
    got = pope.encode_queries(q, at_t) @ pope.encode_keys(k, at_s).mT
    with mp.workdps(50):
        for head in range(2):
            want = sum(
                mp.log1p(mp.exp(q[head, 0, c].item())) * mp.log1p(mp.exp(k[head, 0, c].item()))
                * mp.cos((s - t) * mpf(10_000) ** (-mpf(c) / DIM) + pope.bias[head, c].item())
                for c in range(DIM)
            )  # fmt: skip
            assert got[head, 0, 0].item() == pytest.approx(float(want), rel=1e-13)


def test_phases_are_held_within_a_turn(pope):
    k, table = torch.randn(2, 3, DIM).double(), pope.table(range(3), dtype=torch.float64)
    with torch.no_grad():
        pope.bias.fill_(1.0)
        beyond = pope.encode_keys(k, table)
        pope.bias.zero_()
    assert torch.equal(beyond, pope.encode_keys(k, table))
    assert not PoPE(DIM, heads=2).bias.any()
    drawn = PoPE(64, heads=8, phases="uniform").bias
    assert -6.2832 < drawn.min() < -6.1
    assert -0.1 < drawn.max() <= 0


def test_scores_are_scaled_by_the_width_that_went_in(pope):
    torch.manual_seed(2)
    q, k, v = torch.randn(1, 4, 5, DIM), torch.randn(1, 2, 5, DIM), torch.randn(1, 2, 5, 3)
    positional = Positional(queries_keys=pope)
    made_q, made_k = pope(q.double(), k.double(), consecutive(5))
    scores = made_q @ made_k.repeat_interleave(2, 1).mT / DIM**0.5
    want = scores.softmax(-1) @ v.double().repeat_interleave(2, 1)
    for backend in ("sdpa", "dense", "explicit"):
        got = attention(q, k, v, positional=positional, backend=backend)
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)
    both = Positional(queries_keys=pope, scores=ALiBi(4))
    at = {"q_positions": consecutive(5), "k_positions": consecutive(5)}
    want = reference_attention(q, k, v, positional=both, **at)
    got = attention(q, k, v, positional=both, **at)
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


def test_what_comes_after_it_is_as_wide():
    wide = Positional(queries_keys=(PoPE(8, heads=4), Rotary(16)))
    assert Encoder(32, 4, 1, positional=wide)(torch.randn(1, 3, 32)).shape == (1, 3, 32)
    with pytest.raises(ValueError, match=r"Rotary was built with head_dim=8; .* head_dim 16"):
        Encoder(32, 4, 1, positional=Positional(queries_keys=(PoPE(8, heads=4), Rotary(8))))
