"""FoPE: the formula of the paper in mpmath, vLLM's code in float64, and rotary at its limit."""

import math

import pytest
import torch
from torch.nn import functional as F

from posenc import FoPE
from posenc.frequencies import TurnsPerUnit

DIM, LENGTH = 16, 500


@pytest.fixture
def fope():
    torch.manual_seed(0)
    return FoPE(DIM, heads=2, trained_length=LENGTH, gain=1.0).double()


def vllm(fope, positions, q, k, fill):
    """As ``FourierRotaryEmbedding`` computes, [tokens, heads, head_dim], in float64."""
    inv_freq = 1.0 / 1e4 ** (torch.arange(0, DIM, 2).double() / DIM)
    inv_freq = inv_freq[inv_freq > 2 * math.pi / LENGTH]
    angles = positions.double()[:, None] * inv_freq
    sin = torch.einsum("tD, hDd -> thd", angles.sin(), fope.sin_coef)
    cos = torch.einsum("tD, hDd -> thd", angles.cos(), fope.cos_coef)
    sin = F.pad(sin, (0, DIM // 2 - sin.shape[-1]), value=fill).repeat(1, 1, 2)
    cos = F.pad(cos, (0, DIM // 2 - cos.shape[-1]), value=1.0).repeat(1, 1, 2)

    def turned(x):
        groups = x.unflatten(1, (2, -1))
        first, second = groups.chunk(2, dim=-1)
        half = torch.cat((-second, first), dim=-1)
        return (groups * cos[:, :, None] + half * sin[:, :, None]).flatten(1, 2)

    return turned(q), turned(k)


@pytest.mark.parametrize(("slow", "fill"), [("paper", 0.0), ("code", 1.0)])
def test_it_is_the_form_in_vllm(fope, slow, fill):
    fope.slow = slow
    q, k = torch.randn(7, 4, DIM).double(), torch.randn(7, 2, DIM).double()
    positions = torch.tensor([0, 1, 5, 77, 500, 4000, 3])
    want = vllm(fope, positions, q, k, fill)
    got = fope(q.transpose(0, 1), k.transpose(0, 1), positions)
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine.transpose(0, 1), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_the_pair_that_is_too_slow_is_the_one_that_stands_still(slow):
    """Frequencies need not fall: RIFLEx lowers one in the middle."""
    turns = [0.25, 0.125, 0.0625]
    turns[slow] = 0.001
    fope = FoPE(TurnsPerUnit(turns), heads=1, trained_length=100, gain=0.0)
    cos, sin = fope.table([1, 7], dtype=torch.float64)[:, :, 0].unbind(1)
    angles = 2 * math.pi * torch.tensor([[1.0], [7.0]]).double() * torch.tensor(turns).double()
    angles[:, slow] = 0.0
    torch.testing.assert_close(cos, angles.cos(), atol=1e-12, rtol=0)
    torch.testing.assert_close(sin, angles.sin(), atol=1e-12, rtol=0)


def test_coefficients_begin_as_in_the_authors_code():
    """The identity, and the deviation gain · √(2 / (fan in + fan out)) of Xavier."""
    torch.manual_seed(0)
    fope = FoPE(256, heads=4, trained_length=10**9, gain=0.5)
    spread = 0.5 * math.sqrt(2 / (128 * 128 + 4 * 128))
    for coefficients in (fope.cos_coef, fope.sin_coef):
        around = coefficients.detach() - torch.eye(128)
        assert around.std().item() == pytest.approx(spread, rel=0.02)
        assert around.mean().item() == pytest.approx(0, abs=spread / 20)
