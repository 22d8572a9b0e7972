"""CAPE: what its draws keep, and how far they go."""

import math
from fractions import Fraction

import pytest
import torch

import posenc
from posenc import CAPE, SHAPE, ALiBi, Positional, Rotary, Sinusoidal
from posenc.positions import Coordinates
from posenc.transformer import Encoder


def drawn(cape: CAPE, rows: int = 4000, seq: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return cape(torch.arange(seq).expand(rows, seq), generator=generator).floats()


def test_without_anything_to_draw_positions_stay():
    made = CAPE(global_shift=0, local_shift=0, scale=1)(range(5))
    assert (made == torch.arange(5)).all()


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


def test_the_scale_is_uniform_in_its_logarithm():
    made = drawn(CAPE(0, 0, 1.5))
    logs = (made[:, 1:] / torch.arange(1, 6)).log()
    torch.testing.assert_close(logs, logs[:, :1].expand(-1, 5), atol=1e-5, rtol=0)
    assert logs.abs().max() <= math.log(1.5) + 1e-5
    assert abs(logs[:, 0].mean()) < 5 * math.log(1.5) / math.sqrt(3 * 4000)


def test_local_shifts_of_half_the_distance_keep_order():
    assert (drawn(CAPE(60.0, 0.5, 1.1)).diff(dim=-1) >= 0).all()


def test_it_takes_seconds_in_their_own_steps():
    frames = Coordinates(torch.arange(4), scale=Fraction(1, 100))
    made = CAPE(global_shift=60, local_shift=0, scale=1)(frames)
    assert (made - made[:1]).tolist() == [Fraction(n, 100) for n in range(4)]
    assert abs(made[0].tolist()) <= 60


def test_a_sinusoid_is_taken_where_it_says():
    made = CAPE()(torch.arange(6), generator=torch.Generator().manual_seed(0))
    table = Sinusoidal(4).table(made, dtype=torch.float64)
    angles = made.floats().unsqueeze(-1) * torch.tensor([1.0, 0.01], dtype=torch.float64)
    want = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    torch.testing.assert_close(table, want, atol=1e-12, rtol=0)


def test_a_model_is_shifted_in_training_alone():
    torch.manual_seed(0)
    positional = Positional(Sinusoidal(8), Rotary(4), ALiBi(2), positions=CAPE())
    encoder, x = Encoder(8, 2, 1, positional=positional, is_causal=True), torch.randn(2, 5, 8)
    real = torch.tensor([[True, True, True, False, False], [True] * 5])
    assert not torch.equal(encoder(x, padding_mask=real), encoder(x, padding_mask=real))
    plain = Encoder(8, 2, 1, positional=Positional(Sinusoidal(8), Rotary(4), ALiBi(2)),
                    is_causal=True)  # fmt: skip
    plain.load_state_dict(encoder.state_dict())
    got, want = encoder.eval()(x, padding_mask=real), plain.eval()(x, padding_mask=real)
    assert torch.equal(got[real], want[real])


def test_a_relative_encoding_does_not_see_a_global_shift():
    q, k, v = torch.randn(3, 2, 2, 6, 8).double()
    shifted = Positional(queries_keys=Rotary(8), positions=CAPE(5.0, 0, 1))
    got = posenc.attention(q, k, v, is_causal=True, positional=shifted)
    want = posenc.attention(q, k, v, is_causal=True, positional=shifted.eval())
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


def test_changes_of_whole_positions_come_before_it():
    after, before = (
        Positional(positions=each) for each in ((CAPE(), SHAPE(3)), (SHAPE(3), CAPE()))
    )
    assert isinstance(before.remapped(range(4)), Coordinates)
    with pytest.raises(TypeError, match="positions are Coordinates"):
        after.remapped(range(4))


def test_a_generator_draws_the_same_again():
    cape = CAPE()
    one, other, third = (drawn(cape, 3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, other)
    assert not torch.equal(one, third)


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match=r"scale is 0\.5; it must be a finite number from 1 on"):
        CAPE(scale=0.5)
    with pytest.raises(ValueError, match="local_shift is -1; it must be a finite number from 0"):
        CAPE(local_shift=-1)
    with pytest.raises(TypeError, match="int64"):
        CAPE()(torch.rand(3))
    points = Coordinates.stack([Coordinates([0.5, 1.5]), Coordinates([0, 1])], dim=-1)
    with pytest.raises(ValueError, match="one axis"):
        CAPE()(points)
