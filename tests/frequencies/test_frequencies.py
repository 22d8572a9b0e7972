"""Schedules: exact numbers, equal by value, held against mpmath and against decimal text."""

import math
from fractions import Fraction

import pytest
import torch
from mpmath import mp, mpf

from posenc.frequencies import (
    FromCheckpoint,
    Geometric,
    Llama3,
    Powers,
    YaRN,
    as_schedule,
)
from posenc.frequencies.schedule import TURN_BITS, TWO_PI


def fixed_point(frequency: mpf) -> int:
    """round(ω / 2π · 2^192)"""
    with mp.workdps(130):
        return int(mp.nint(frequency / (2 * mp.pi) * mpf(2) ** TURN_BITS))


def test_two_pi_has_its_digits():
    with mp.workdps(130):
        assert abs(mpf(str(TWO_PI)) - 2 * mp.pi) < mpf(10) ** -119


@pytest.mark.parametrize("dim", [1, 2, 6, 7, 64, 128, 512])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 100, 10_000_000.0, 0.5, 1.0])
def test_geometric_is_rounded_once(oracle, dim, base):
    expected = tuple(fixed_point(oracle.frequency(base, i, dim)) for i in range(0, dim, 2))
    assert Geometric(dim, base).turns() == expected
    assert len(Geometric(dim, base)) == (dim + 1) // 2


@pytest.mark.parametrize("denominator", [31, 30.5, 64])
def test_powers_take_any_fraction(oracle, denominator):
    """i / (d/2 − 1) as in fairseq, and a shift that is no whole number."""
    numerators = tuple(range(32))
    with mp.workdps(130):
        expected = tuple(
            fixed_point(mpf(10_000) ** (-mpf(i) / mpf(denominator))) for i in numerators
        )
    assert Powers(10_000.0, numerators, denominator).turns() == expected


def test_a_checkpoints_float_is_its_own_rational():
    given = 1.0 / (10_000.0 ** (torch.arange(0, 64, 2).float() / 64))
    schedule = FromCheckpoint(given)
    assert schedule.frequencies == tuple(Fraction(w) for w in given.tolist())
    assert schedule.turns() == tuple(fixed_point(mpf(w)) for w in given.tolist())
    assert torch.equal(schedule.float32("float32"), given)
    assert schedule == FromCheckpoint(given.tolist())
    assert schedule.turns() != Geometric(64).turns()


@pytest.mark.parametrize(
    "row", [[1.0, 0.1], (1, 0.1), torch.tensor([1.0, 0.1], dtype=torch.float64)]
)
def test_a_row_of_numbers_is_a_schedule(row):
    schedule = as_schedule(row)
    assert schedule == FromCheckpoint([1.0, 0.1])
    assert repr(schedule) == "FromCheckpoint((1.0, 0.1))"
    assert eval(repr(schedule)) == schedule
    assert repr(as_schedule([Fraction(1, 3)])) == "FromCheckpoint((Fraction(1, 3),))"


def test_the_two_float32_forms():
    """The power of transformers' rope and the exponential of the tutorial differ in last bits."""
    power = 1.0 / (10_000.0 ** (torch.arange(0, 512, 2).float() / 512))
    log = torch.exp(torch.arange(0, 512, 2) * (-math.log(10_000.0) / 512))
    assert torch.equal(Geometric(512).float32("float32"), power)
    assert torch.equal(Geometric(512).float32("float32-log"), log)
    assert not torch.equal(power, log)


@pytest.mark.parametrize(
    ("dim", "base", "factor", "trained"), [(128, 1e4, 16.0, 4096), (64, 1.5e5, 32.0, 4096)]
)
def test_the_paper_of_yarn_has_a_ramp_of_its_own(dim, base, factor, trained):
    """Equations 17 to 20: γ(r) rises linearly in the turns r = L/λ, from α = 1 to β = 32."""
    papers = Llama3(Geometric(dim, base), factor, low=1.0, high=32.0, trained_length=trained)
    codes = YaRN(Geometric(dim, base), factor, trained, truncate=False)
    for i, length in enumerate(papers.wavelengths()):
        theta = base ** (-2 * i / dim)
        ratio = trained * theta / (2 * math.pi)
        gamma = min(max((ratio - 1) / (32 - 1), 0.0), 1.0)
        meant = (1 - gamma) * theta / factor + gamma * theta
        assert 2 * math.pi / length == pytest.approx(meant, rel=1e-12)
    lower = [
        of / other for of, other in zip(codes.wavelengths(), papers.wavelengths(), strict=True)
    ]
    assert max(lower) <= 1 + 1e-12
    assert min(lower) < 0.35


@pytest.mark.parametrize("given", [(Geometric(8), 0.5, 64), (Geometric(8), 2.0, 64, 1.0, 32.0),
                                   (Geometric(8, 1.0), 2.0, 64), (Geometric(8, 2.0), 4.0, 4096),
                                   (Geometric(128), 4.0, 3)])  # fmt: skip
def test_yarn_needs_a_ramp(given):
    with pytest.raises(ValueError, match=r"factor|ramp|base"):
        YaRN(*given)
