"""Phases by one product of matrices: held against Python's integers, and against the other way."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.frequencies.schedule import TURN_BITS
from posenc.numerics.digits import DIGIT, MOST_SUMMANDS, STEP_DIGITS, phases_of_sum
from posenc.numerics.phases import Summand, phases, turn_limbs

INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])


TURNS = st.integers(-(2**TURN_BITS), 2**TURN_BITS) | st.sampled_from([0, 1, -1, 2**191])


def whole(phase) -> list[int]:
    """The three words of each phase as one unsigned integer."""
    words = [[int(word) % 2**64 for word in part.flatten().tolist()] for part in phase]
    return [high << 128 | middle << 64 | low for high, middle, low in zip(*words, strict=True)]


@settings(max_examples=40)
@given(data=st.data())
def test_a_sum_of_phases_is_that_of_integers_modulo_one_turn(data):
    rows, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    steps = st.lists(INT64, min_size=rows, max_size=rows)
    turns = st.lists(TURNS, min_size=count, max_size=count)
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


def test_no_rows_and_no_frequencies_have_no_phases():
    none = torch.zeros(0, 2, dtype=torch.int64)
    assert phases_of_sum([Summand(none, (1, 2, 3))]).high.shape == (0, 2, 3)
    assert phases_of_sum([Summand(torch.zeros(2, dtype=torch.int64), ())]).low.shape == (2, 0)


def test_a_cast_around_it_reaches_no_digit():
    one = Summand(torch.tensor([2**62 + 1]), (3**120,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert whole(phases_of_sum([one])) == [(2**62 + 1) * 3**120 % 2**TURN_BITS]
