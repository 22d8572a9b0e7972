"""Schedules of image and video generators: NTK by parts, DyPE, RIFLEx, against their formulas."""

import math

import pytest
from mpmath import mp, mpf

from posenc.frequencies import (
    NTK,
    DyNTK,
    DyYaRN,
    Geometric,
    NTKByParts,
    RIFLEx,
    intrinsic_frequency,
)
from posenc.frequencies.schedule import TURN_BITS

FLUX = Geometric(56)


def radians(schedule):
    return [turns / 2.0**TURN_BITS * 2 * math.pi for turns in schedule.turns()]


def by_parts(dim, base, length, trained, kappa):
    """The authors' formula for one axis, in float64 numbers."""
    s, pairs = length / trained, dim // 2
    plain = [base ** (-2 * i / dim) for i in range(pairs)]
    larger = base * s ** (dim / (dim - 2))
    ntk = [larger ** (-2 * i / dim) for i in range(pairs)]

    def kept(fast, slow):
        def border(turns):
            return dim * math.log(trained / (turns * kappa * 2 * math.pi)) / (2 * math.log(base))

        low = max(math.floor(border(fast)), 0)
        high = min(math.ceil(border(slow)), dim - 1, pairs)
        return [1 - min(max((i - low) / (high - low), 0), 1) for i in range(pairs)]

    mixed = [w / s * (1 - m) + n * m for w, n, m in zip(plain, ntk, kept(1.25, 0.75), strict=True)]
    return [v * (1 - m) + w * m for v, w, m in zip(mixed, plain, kept(16, 2), strict=True)]


@pytest.mark.parametrize("time", [1.0, 0.9, 0.5, 0.25])
@pytest.mark.parametrize("length", [128, 256])
def test_dyyarn_is_the_authors_formula(length, time):
    made = DyYaRN(FLUX, 64).at(length, time)
    want = by_parts(56, 1e4, length, 64, time**2)
    assert radians(made) == pytest.approx(want, rel=1e-13)
    assert made.attention_factor == pytest.approx(0.1 * math.log(length / 64) + 1)


def test_the_end_of_the_denoising_has_the_frequencies_of_the_training():
    """Where the borders lie past the last pair, all pairs are on their fast side."""
    for time in (0.0, 1e-3):
        assert DyYaRN(FLUX, 64).at(256, time).turns() == FLUX.turns()
    assert DyYaRN(FLUX, 64).at(64, 1.0) is FLUX
    assert DyYaRN(FLUX, 64).at(7, 0.3) is FLUX


def test_dyntk_by_hand():
    """s = 4, κ(t) = 2t²: 4² at first, 4^½ at half of the time."""
    dype = DyNTK(FLUX, 64)
    assert dype.at(256, 1.0) == NTK(FLUX, 16)
    assert dype.at(256, 0.5) == NTK(FLUX, 2)
    assert dype.at(64, 1.0).turns() == FLUX.turns()
    slowest = DyNTK(FLUX, 64, exponent=1.5).at(256, 0.3)
    with mp.workdps(60):
        factor = mpf(4) ** (2 * mpf(0.3) ** mpf(1.5))
        last = mpf(1e4) ** (-mpf(54) / 56) / factor
        assert abs(mpf(slowest.turns()[-1]) / 2**192 * 2 * mp.pi / last - 1) < mpf(10) ** -45


# RIFLEx -------------------------------------------------------------------------------------------


def test_riflex_changes_one_frequency():
    schedule = Geometric(16, base=256.0)
    longer = RIFLEx(schedule, 4, 66)
    expected = radians(schedule)
    expected[3] = 0.9 * 2 * math.pi / 66
    assert radians(longer) == pytest.approx(expected, rel=1e-15)
    assert longer.turns()[:3] == schedule.turns()[:3]
    assert longer.turns()[4:] == schedule.turns()[4:]


@pytest.mark.parametrize(
    ("dim", "base", "frames", "k"),
    [(16, 256.0, 48, 4), (44, 1e4, 30, 5), (16, 1e4, 20, 2)],
    ids=["HunyuanVideo", "Wan", "CogVideoX"],
)
def test_the_intrinsic_frequency_is_the_authors(dim, base, frames, k):
    """By their rule: periods rounded to whole frames, the nearest one taken."""
    periods = [round(2 * math.pi * base ** (2 * j / dim)) for j in range(dim // 2)]
    assert min(range(dim // 2), key=lambda j: abs(periods[j] - frames)) + 1 == k
    assert intrinsic_frequency(Geometric(dim, base), frames) == k


def test_a_ramp_ends_at_the_first_pair_that_is_not_there():
    """As in DyPE's code: i(16) is 49.9 and i(2) 64.3 of 64 pairs, which the older code of YaRN
    leaves where it is. Both leave the last pair to NTK, which divides it by the factor."""
    plain = Geometric(128)
    last = NTKByParts(plain, 4, 131_072).turns()[63] / plain.turns()[63]
    dype, older = ((63 - 49) / (end - 49) for end in (64, 65))
    assert last == pytest.approx(1 - dype * 3 / 4, rel=1e-15)
    assert last < 0.88 * (1 - older * 3 / 4)
