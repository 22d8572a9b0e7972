"""PoPE: the paper's sum in mpmath, widths that grow, and every place that must bear it."""

import pytest
import torch
from mpmath import mp, mpf

from posenc import ALiBi, PoPE, Positional, attention
from posenc.positions import consecutive
from posenc.testing.reference import reference_attention

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
