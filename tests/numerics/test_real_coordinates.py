"""cos and sin at real coordinates: the promise of whole positions, against mpmath."""

from fractions import Fraction

import pytest
import torch
from mpmath import mp, mpf
from tests.oracle import DIGITS

from posenc.frequencies import FromCheckpoint, Geometric
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.sincos import SinCos
from posenc.positions import Coordinates

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]

HARD = {
    "timesteps": Coordinates(torch.tensor([999.9, 0.1, -999.9, 1e-3])),
    "seconds": Coordinates([0.1, 36.1, -1e2 / 3]),
    "thirds": Coordinates(torch.tensor([1, -2, 2**62, 7]), scale=Fraction(1, 3)),
    "sevenths of large numbers": Coordinates([2**62, -(2**62) + 1], scale=Fraction(1000, 7)),
    "mantissas of 62 bits": Coordinates([2**62 - 1, 2**61 + 1], scale=Fraction(1, 2**40)),
    "fine": Coordinates([2**62 - 1, 1, -3], scale=Fraction(1, 2**100)),
    "far": Coordinates([2.0**63, -(2.0**66) * 3]),
    "coarse": Coordinates([2**62, 5], scale=2**64),
    "grid": Coordinates(torch.arange(-7, 8, 2), scale=Fraction(1, 15)),
}

with mp.workdps(DIGITS):
    QUARTERS = [int(mp.nint(mp.pi / 2 * k * 2**74)) for k in (1, 10**6 + 7, 10**14 - 3, -(10**13))]

LONG = {
    "seconds of an hour": Coordinates([0.1, 3600.1, -0.1, 1 / 3]),
    "of a day, later": Coordinates([0.1, 86400.3]) + Fraction(10**9, 3),
    "large with fractions": Coordinates([2.0**60 + 2**10, -0.1, Fraction(1, 7)]),
    "small below 0": Coordinates([-(2.0**-70), 2.0**-70, 2.0**50]),
    "rationals": Coordinates([Fraction(-(10**17), 997), Fraction(1, 991), Fraction(5, 10**9)]),
    "huge": Coordinates([2.0**100, 1.0, -3.0]),
    "as near to quarter turns as 62 bits come": Coordinates([Fraction(n, 2**74) for n in QUARTERS]),
}
"""Coordinates that no step holds together exactly: what they are is what 62 bits hold."""

HARD |= LONG


def truth(number: Fraction, frequency: mpf) -> tuple[mpf, mpf]:
    with mp.workdps(DIGITS):
        return mp.cos_sin(mpf(number.numerator) / number.denominator * frequency)


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by", ["torch", "kernels"])
def test_values_are_correctly_rounded_and_within_3_ulp_in_float64(oracle, name, dtype, by):
    sincos, made = SinCos(Geometric(16)), HARD[name]
    built = sincos.cos_sin(made, dtype) if by == "torch" else cos_sin(sincos, made, dtype)
    for row, number in enumerate(made.tolist()):
        for pair, frequency in enumerate(oracle.frequencies(1e4, 16)):
            for got, value in zip(built, truth(number, frequency), strict=True):
                if dtype == torch.float64:
                    assert oracle.ulps(got[row, pair].item(), value, dtype) <= 3
                else:
                    assert got[row, pair].item() == oracle.nearest(value, dtype), (number, pair)


def test_thirds_at_three_times_the_frequency_are_whole():
    made = SinCos(FromCheckpoint([3.0])).cos_sin(Coordinates(torch.arange(2**14, 2**14 + 50)) / 3)
    whole = SinCos(FromCheckpoint([1.0])).cos_sin(torch.arange(2**14, 2**14 + 50))
    assert all(map(torch.equal, made, whole))


def test_whole_coordinates_give_the_bits_of_whole_positions():
    sincos, whole = SinCos(Geometric(64)), torch.randint(-(2**50), 2**50, (50,))
    for made in (Coordinates(whole), Coordinates(whole.double())):
        assert all(map(torch.equal, cos_sin(sincos, made), cos_sin(sincos, whole)))
    halves = Coordinates(torch.cat([whole * 2, torch.tensor([1])]), scale=Fraction(1, 2))
    for half, whole_ in zip(cos_sin(sincos, halves), cos_sin(sincos, whole), strict=True):
        assert torch.equal(half[:-1], whole_)


def test_the_common_formula_takes_floats():
    """arithmetic="float32": float32 coordinate × float32 frequency, as everybody computes it."""
    schedule, times = Geometric(16), torch.tensor([999.9, 0.1])
    angles = times[:, None] * schedule.float32("float32")
    cos, sin = SinCos(schedule, "float32").cos_sin(Coordinates(times))
    assert torch.equal(cos, angles.cos())
    assert torch.equal(sin, angles.sin())
    by_kernels = cos_sin(SinCos(schedule, "float32"), Coordinates(times))
    assert torch.equal(by_kernels[0], cos)
