"""Real coordinates: nothing is lost in making them, moving them, or ordering them."""

import math
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.positions import (
    Coordinates,
    checked_distances,
    common_scale,
)
from posenc.positions.checks import floats
from posenc.positions.distances import float_distances

TINY, HUGE = 5e-324, 1.7976931348623157e308


def near(size):
    """Floats that 63 bits hold together."""
    return st.floats(-size, size).map(lambda x: math.ldexp(round(math.ldexp(x, 40)), -40))


# What goes in comes out ---------------------------------------------------------------------------


@given(st.lists(near(2.0**20), max_size=8))
def test_floats_are_the_numbers_that_they_are(numbers):
    made = Coordinates(torch.tensor(numbers, dtype=torch.float64))
    assert made.tolist() == [Fraction(number) for number in numbers]
    assert made.values.tolist() == Coordinates(numbers).values.tolist()  # by way of ratios
    assert made.floats().tolist() == numbers


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.0, 999.9, -1e300, 1e-300, TINY, -3 * TINY, HUGE, 2.0**62, -(2.0**63)]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_float_alone_is_a_coordinate(number, dtype):
    """Denormals, the largest, and the float32 next to 999.9."""
    given = torch.tensor([number], dtype=dtype)
    if not given.isfinite():
        return
    made = Coordinates(given)
    assert made.values.dtype == torch.int64
    assert made.tolist() == [Fraction(given.item())]


def test_whole_numbers_go_in_steps_of_one():
    for whole in ([0, 3], [0.0, 3.0], torch.tensor([0.0, 3.0]), np.array([0, 3], dtype=np.uint8)):
        made = Coordinates(whole)
        assert made.scale == 1
        assert made.values.tolist() == [0, 3]
    assert Coordinates([0.0, 2.0**70]).scale > 1


@given(
    st.lists(st.floats(-1e12, 1e12) | near(2.0**10), max_size=20),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
)
def test_rounding_floats_is_exact(numbers, step):
    """Also halfway between two steps, where a quotient in float64 does not tell."""
    numbers += [float((n + Fraction(1, 2)) * step) for n in (-3, 0, 7, 10**9)]
    made = Coordinates.rounded(torch.tensor(numbers, dtype=torch.float64), step)
    assert made.values.tolist() == [round(Fraction(number) / step) for number in numbers]


# Like a tensor ------------------------------------------------------------------------------------


def test_indexing():
    made = Coordinates(torch.arange(12).view(2, 3, 2), scale=(Fraction(1, 2), Fraction(1, 3)))
    assert made[1].tolist() == [[3, Fraction(7, 3)], [4, 3], [5, Fraction(11, 3)]]
    assert made[..., 1].scale == made[:, :, 1].scale == Fraction(1, 3)
    assert made[..., 0, :].scale == made[:, 0].scale == made.scale
    assert made[..., :1].scale == (Fraction(1, 2),)
    assert made[torch.tensor([True, False])].tolist() == [made[0].tolist()]
    assert made[torch.tensor([1, 0]), None].shape == (2, 1, 3, 2)


@pytest.mark.parametrize("scale", [Fraction(1, 3), (Fraction(1, 7), Fraction(2))])
def test_unbound_is_indexed_along_the_last_axis(scale):
    long = Coordinates([[0.1, 3600.1], [-1e-9, 7.0]])
    for points in (Coordinates([[1, 2], [3, 4]], scale=scale), Coordinates(long, scale=scale)):
        for axis, part in enumerate(points.unbind(-1)):
            assert part.tolist() == points[..., axis].tolist()
            assert part.scale == points[..., axis].scale


def test_stack_and_cat():
    y, x = Coordinates([0.5, 1.5]), Coordinates([Fraction(1, 3), 1])
    points = Coordinates.stack([y, x], dim=-1)
    assert points.scale == (Fraction(1, 2), Fraction(1, 3))
    assert points.tolist() == [[Fraction(1, 2), Fraction(1, 3)], [Fraction(3, 2), 1]]
    assert Coordinates.stack([y, x]).scale == Fraction(1, 6)
    assert Coordinates.cat([y, x]).tolist() == y.tolist() + x.tolist()
    twice = Coordinates.cat([points, points + 1])
    assert twice.tolist() == points.tolist() + (points + 1).tolist()


# Exact arithmetic and order -----------------------------------------------------------------------


# Seven of them have a common step of 1e-14 at the finest, so that sums stay within 63 bits.
fractions = st.fractions(-1000, 1000, max_denominator=100)


@given(st.lists(fractions, min_size=1, max_size=6), fractions)
def test_sums_and_order_are_those_of_fractions(numbers, by):
    made = Coordinates(numbers)
    assert (made + by).tolist() == (by + made).tolist() == [n + by for n in numbers]
    assert (made - by).tolist() == [n - by for n in numbers]
    assert (by - made).tolist() == [by - n for n in numbers]
    assert (made * by).tolist() == [n * by for n in numbers]
    assert (made < by).tolist() == [n < by for n in numbers]
    assert (made >= by).tolist() == [n >= by for n in numbers]
    assert (made == by).tolist() == [n == by for n in numbers]
    assert (made != Coordinates(numbers)).tolist() == [False] * len(numbers)


@pytest.mark.parametrize("number", [2**63, -(2**63), Fraction(-(10**30), 3), Fraction(1, 3)])
@pytest.mark.parametrize("relation", [lt, le, gt, ge, eq, ne])
def test_numbers_of_any_size_are_compared(relation, number):
    ends = torch.tensor([2**63 - 1, -(2**63), 1])
    for made in (Coordinates(ends), Coordinates([0.1, 3600.1]), Coordinates(ends, scale=(1, 2, 3))):
        assert relation(made, number).tolist() == [relation(n, number) for n in made.tolist()]


# Beyond 62 bits -----------------------------------------------------------------------------------


def test_the_largest_takes_62_bits_and_others_are_the_nearest():
    """1e-9 beside 1e9 is off by 7e-11; each by half a step at most."""
    made = Coordinates([1e9, 1e-9])
    assert made.scale == Fraction(1, 2**32)
    assert made.values.tolist() == [10**9 * 2**32, 4]
    assert abs(made[1].tolist() - Fraction(1e-9)) < Fraction(1, 10**10)
    hour = torch.rand(200, dtype=torch.float64) * 3600
    hour[:2] = torch.tensor([0.1, 3600.1], dtype=torch.float64)
    exact = [Fraction(x) for x in hour.tolist()]
    for made in (Coordinates(hour), Coordinates(hour.tolist()), Coordinates(exact)):
        assert 2**61 <= int(made.values.abs().max()) < 2**62
        off = max(abs(a - b) for a, b in zip(made.tolist(), exact, strict=True))
        assert off <= made.scale / 2


@given(st.lists(st.floats(-(2.0**70), 2.0**70), min_size=1))
def test_any_floats_are_taken_and_alike_from_tensors_and_lists(numbers):
    made = Coordinates(torch.tensor(numbers, dtype=torch.float64))
    assert made.tolist() == Coordinates(numbers).tolist()
    for got, number in zip(made.tolist(), numbers, strict=True):
        assert abs(got - Fraction(number)) <= Fraction(max(map(abs, numbers))) / 2**62


def test_exact_rationals_stay_exact():
    thirds = Coordinates(torch.tensor([1, 2**61]), scale=Fraction(1, 3))
    assert (thirds + 1).tolist() == [Fraction(4, 3), Fraction(2**61, 3) + 1]
    assert (thirds / 7 * 30).tolist() == [Fraction(10, 7), Fraction(10 * 2**61, 7)]
    seconds = Coordinates([0.1, 3600.1])
    assert (seconds / 30).tolist() == [n / 30 for n in seconds.tolist()]
    assert (seconds - 3600).tolist() == [n - 3600 for n in seconds.tolist()]


def test_what_has_no_common_step_is_rounded_to_that_of_62_bits():
    seconds, third = Coordinates([0.1, 3600.1]), Coordinates([Fraction(1, 3)])
    for made in (seconds + Fraction(1, 3), Coordinates.cat([seconds, third])):
        assert made.scale == Fraction(1, 2**50)
    wanted = [n + Fraction(1, 3) for n in seconds.tolist()]
    for got, want in zip((seconds + third).tolist(), wanted, strict=True):
        assert abs(got - want) <= Fraction(1, 2**51)


def test_sums_never_leave_int64():
    made = Coordinates([0.1, 3600.1])
    numbers = made.tolist()
    for times in range(2, 12):
        made = made + Coordinates([0.1, 3600.1])
        for got, number in zip(made.tolist(), numbers, strict=True):
            assert abs(got - times * number) <= times * made.scale
    assert (Coordinates([2**62]) + Coordinates([2**62])).tolist() == [2**63]


rationals = st.builds(
    Fraction, st.integers(-99, 99) | st.sampled_from([2**31, 2**53 + 1, 2**62, -(2**61)]),
    st.sampled_from([1, 2, 3, 10, 2**20]),
)  # fmt: skip


@given(st.lists(st.tuples(rationals, rationals), min_size=1, max_size=4), rationals)
def test_sums_of_any_size_are_within_two_roundings_to_62_bits(pairs, number):
    one, other = (Coordinates(list(side)) for side in zip(*pairs, strict=True))
    largest = max(map(abs, (*one.tolist(), *other.tolist(), number)))
    for made, want in (
        (one + other, [x + y for x, y in zip(one.tolist(), other.tolist(), strict=True)]),
        (one - other, [x - y for x, y in zip(one.tolist(), other.tolist(), strict=True)]),
        (number - one, [number - x for x in one.tolist()]),
    ):
        assert all(abs(a - b) <= largest / 2**60 for a, b in zip(made.tolist(), want, strict=True))


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=5), st.fractions(0, 10**6))
def test_tokens_of_a_cache_see_themselves(times, begin):
    """Each step joins those before it, and finds its own number among them."""
    kept = Coordinates([begin])
    for time in times:
        new = Coordinates([time])
        kept = Coordinates.cat([kept, new])
        here, there = common_scale(new, kept)
        assert here.values[-1] == there.values[-1]


def test_steps_may_be_made_finer_and_only_exactly_coarser():
    made = Coordinates([0.5, 1.0])
    assert made.with_scale(Fraction(1, 6)).values.tolist() == [3, 6]
    assert made.with_scale(Fraction(1, 64)).tolist() == made.tolist()
    with pytest.raises(ValueError, match="no whole number of steps of 1"):
        made.with_scale(1)


def test_distances_are_exact_and_whole_positions_count_as_coordinates():
    q, k = Coordinates([0.5, 2]), torch.tensor([0, 1])
    made = checked_distances(q, k, reals=True)
    assert made.tolist() == [[Fraction(1, 2), Fraction(-1, 2)], [2, 1]]


def test_common_scale_is_the_coarsest():
    six, ten = common_scale(Coordinates([Fraction(1, 6)]), Coordinates([Fraction(1, 10)]))
    assert six.scale == ten.scale == Fraction(1, 30)
    whole, half = common_scale(Coordinates([4]), Coordinates([[1, 3]], scale=(2, Fraction(1, 2))))
    assert whole.scale == half.scale == (1, Fraction(1, 2))
    assert whole.tolist() == [4, 4]


@given(
    st.one_of(st.integers(2**53, 2**63 - 1), st.integers(-(2**63), -(2**53))),
    st.integers(0, 54),
    st.integers(-2, 2),
)
def test_whole_positions_of_any_size_are_rounded_to_bfloat16_once(number, zeros, by):
    """Next to the middle of two of its numbers, too, which float64 does not always tell."""
    number = max(min((number >> zeros << zeros) + by, 2**63 - 1), -(2**63))
    unit = Fraction(2) ** (abs(number).bit_length() - 8)
    nearest = round(Fraction(number, unit)) * unit  # ties to even
    assert floats(torch.tensor([number]), torch.bfloat16).item() == nearest
    if abs(number) < 2**62:
        found = float_distances([number], [0], torch.bfloat16)
        assert found.item() == nearest


@pytest.mark.parametrize("number", [1e-300, 5e-324, 1.5e300, 2.5e-310, 3 * 2.0**-1074])
def test_floats_of_any_size_are_floats_again(number):
    values = Coordinates([0.0, number, -number])
    assert values.floats().tolist() == [0.0, number, -number]
