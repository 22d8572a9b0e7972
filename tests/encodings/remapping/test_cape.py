"""CAPE: what its draws keep, and how far they go."""

import math

import pytest
import torch

import posenc
from posenc import CAPE, Positional, Rotary


def drawn(cape: CAPE, rows: int = 4000, seq: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return cape(torch.arange(seq).expand(rows, seq), generator=generator).floats()


def test_a_global_shift_is_one_a_row_exactly():
    made = CAPE(5.0, 0, 1)(torch.arange(7).expand(50, 7))
    moved = made - torch.arange(7)
    assert torch.equal(moved.values, moved.values[:, :1].expand(50, 7))
    assert moved.values[:, 0].unique().numel() > 40


def test_shifts_fill_their_range():
    whole = drawn(CAPE(2.0, 0, 1))[:, 0]
    each = drawn(CAPE(0, 0.5, 1)) - torch.arange(6)
    for shifts, most in ((whole, 2.0), (each.ravel(), 0.5)):
        assert shifts.abs().max() <= most
        assert shifts.min() < -0.98 * most
        assert shifts.max() > 0.98 * most
        # A uniform number has mean 0 and variance most²/3; 4000 draws come within 5 deviations.
        assert abs(shifts.mean()) < 5 * most / math.sqrt(3 * 4000)
        assert shifts.var().item() == pytest.approx(most**2 / 3, rel=0.1)
    assert torch.corrcoef(each.T).fill_diagonal_(0).abs().max() < 0.1  # each its own


def test_local_shifts_of_half_the_distance_keep_order():
    assert (drawn(CAPE(60.0, 0.5, 1.1)).diff(dim=-1) >= 0).all()


def test_a_relative_encoding_does_not_see_a_global_shift():
    q, k, v = torch.randn(3, 2, 2, 6, 8).double()
    shifted = Positional(queries_keys=Rotary(8), positions=CAPE(5.0, 0, 1))
    got = posenc.attention(q, k, v, is_causal=True, positional=shifted)
    want = posenc.attention(q, k, v, is_causal=True, positional=shifted.eval())
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)
