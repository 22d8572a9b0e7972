"""Phases are integers: held against Python's integers of any size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.frequencies import Geometric
from posenc.frequencies.schedule import TURN_BITS
from posenc.numerics.phases import (
    DIGIT,
    LIMBS,
    MOST_SUMMANDS,
    STEP_DIGITS,
    Summand,
    cos_sin_of,
    phases,
    phases_of_sum,
    turn_limbs,
)

INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
SIGNED_TURNS = st.integers(-(2**TURN_BITS), 2**TURN_BITS) | st.sampled_from([0, 1, -1, 2**191])
TURNS = st.integers(0, 2**TURN_BITS - 1) | st.sampled_from([0, 1, 2**191, 2**192 - 1])


def whole(phase) -> list[int]:
    """The three words of each phase as one unsigned integer."""
    words = [[int(word) % 2**64 for word in part.flatten().tolist()] for part in phase]
    return [high << 128 | middle << 64 | low for high, middle, low in zip(*words, strict=True)]


@given(positions=st.lists(INT64, min_size=1, max_size=5), turns=st.lists(TURNS, max_size=5))
def test_a_phase_is_the_integer_product_modulo_one_turn(positions, turns):
    got = phases(torch.tensor(positions).unsqueeze(-1), turn_limbs(tuple(turns)))
    assert whole(got) == [p * turn % 2**TURN_BITS for p in positions for turn in turns]


@given(turn=st.integers(-(2**200), 2**200))
def test_a_turn_of_any_size_or_sign_is_kept_modulo_one(turn):
    limbs = turn_limbs((turn,))
    assert limbs.shape == (LIMBS, 1)
    assert sum(int(limb) << 32 * j for j, limb in enumerate(limbs[:, 0])) == turn % 2**TURN_BITS


@given(p=st.integers(-(2**62), 2**62 - 1), k=st.integers(-(2**62), 2**62 - 1))
def test_phases_add_bit_for_bit(p, k):
    limbs = turn_limbs(Geometric(16).turns())
    both, one, other = (whole(phases(torch.tensor([n]), limbs)) for n in (p + k, p, k))
    assert both == [(a + b) % 2**TURN_BITS for a, b in zip(one, other, strict=True)]


@given(p=st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_negative_position_mirrors_bit_for_bit(p):
    limbs = turn_limbs(Geometric(32).turns())
    cos, sin = cos_sin_of(phases(torch.tensor([p]), limbs))
    mirrored_cos, mirrored_sin = cos_sin_of(phases(torch.tensor([-p]), limbs))
    assert torch.equal(cos, mirrored_cos)
    assert torch.equal(sin, -mirrored_sin)


def test_quarter_turns_have_exact_values():
    cos, sin = cos_sin_of(phases(torch.arange(-4, 5), turn_limbs((1 << TURN_BITS - 2,))))
    assert cos.tolist() == [1, 0, -1, 0, 1, 0, -1, 0, 1]
    assert sin.tolist() == [0, 1, 0, -1, 0, 1, 0, -1, 0]


def test_the_smallest_phase_of_all_is_not_lost():
    """One unit of 2^-128 of a turn beside each quarter: the sine there is the angle itself."""
    tiny = 1 << TURN_BITS - 128
    around = tuple((q << TURN_BITS - 2) + tiny for q in range(4))
    cos, sin = cos_sin_of(phases(torch.tensor([1]), turn_limbs(around)))
    angle = pytest.approx(6.283185307179586 * 2.0**-128, rel=2e-16)
    assert [sin[0], -cos[1], -sin[2], cos[3]] == [angle] * 4


# Sums, by one product of digits.


@settings(max_examples=40)
@given(data=st.data())
def test_a_sum_of_phases_is_that_of_integers_modulo_one_turn(data):
    rows, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    steps = st.lists(INT64, min_size=rows, max_size=rows)
    turns = st.lists(SIGNED_TURNS, min_size=count, max_size=count)
    given_ = data.draw(st.lists(st.tuples(steps, turns), min_size=1, max_size=4))
    got = phases_of_sum([Summand(torch.tensor(s), tuple(t)) for s, t in given_])
    sums = [sum(s[i] * t[j] for s, t in given_) for i in range(rows) for j in range(count)]
    assert whole(got) == [n % 2**TURN_BITS for n in sums]


@pytest.mark.parametrize("steps", [2**63 - 1, -(2**63), -1, (1 << 2 * DIGIT) - 1])
@pytest.mark.parametrize("count", [1, MOST_SUMMANDS, MOST_SUMMANDS + 1, 2 * MOST_SUMMANDS + 1])
def test_the_largest_digits_of_many_summands_are_still_added_exactly(steps, count):
    turn = 2**TURN_BITS - 1  # every digit is the largest
    got = phases_of_sum([Summand(torch.tensor([steps]), (turn,))] * count)
    assert whole(got) == [count * steps * turn % 2**TURN_BITS]


def test_sums_of_one_product_stay_below_what_float64_counts_to():
    """Two full digits of a step, and one of 16 bits and a sign, meet full digits of turns."""
    most = (STEP_DIGITS - 1) * (2**DIGIT - 1) ** 2 + 2**15 * (2**DIGIT - 1)
    assert MOST_SUMMANDS * most < 2**53


def test_both_ways_are_one_for_steps_of_any_shape():
    steps = torch.tensor([[0, -5, 2**40], [2**62, -(2**63), 7]])
    turns = (3**120, -(5**80), 1)
    other = phases(steps.unsqueeze(-1), turn_limbs(turns))
    made = phases_of_sum([Summand(steps, turns)])
    assert all(map(torch.equal, made, other))
