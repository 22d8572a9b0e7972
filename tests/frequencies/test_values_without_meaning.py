"""Numbers that a schedule cannot have are refused in words, never computed with."""

import dataclasses
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import Rotary
from posenc.frequencies import (
    NTK,
    Divided,
    DynamicNTK,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
)
from posenc.frequencies.selected import Selected

PLAIN = Geometric(8)
ONES = (1.0,) * 4
NO_NUMBERS = [math.nan, math.inf, -math.inf, 0.0, -2.0, True, None, "4", 1 + 0j]
EXTENDING = {
    "NTK": lambda factor: NTK(PLAIN, factor),
    "DynamicNTK": lambda factor: DynamicNTK(PLAIN, factor, 64),
    "YaRN": lambda factor: YaRN(PLAIN, factor, 64),
    "Llama3": lambda factor: Llama3(PLAIN, factor),
    "LongRoPE": lambda factor: LongRoPE(PLAIN, ONES, ONES, 64, factor),
}
TRAINED = {
    "DynamicNTK": lambda length: DynamicNTK(PLAIN, 2.0, length),
    "YaRN": lambda length: YaRN(PLAIN, 2.0, length),
    "Llama3": lambda length: Llama3(PLAIN, trained_length=length),
    "LongRoPE": lambda length: LongRoPE(PLAIN, ONES, ONES, length),
}


def refused(text, error=ValueError):
    return pytest.raises(error, match=re.escape(text))


@pytest.mark.parametrize("name", EXTENDING)
@pytest.mark.parametrize("factor", NO_NUMBERS, ids=repr)
def test_a_factor_is_a_positive_number(name, factor):
    with refused(f"{name}: factor is {factor!r}; it must be a positive and finite number."):
        EXTENDING[name](factor)


@pytest.mark.parametrize("name", EXTENDING)
@pytest.mark.parametrize("factor", [0.5, Fraction(99, 100)])
def test_an_extension_does_not_shrink(name, factor):
    with refused(f"{name}: factor is {factor}; it says by how much the trained length is extended"):
        EXTENDING[name](factor)
    EXTENDING[name](1)


def test_position_interpolation_may_spread_positions_out():
    """1/s of a frequency means something for every positive s."""
    halves = [PLAIN.turns(), Linear(PLAIN, 0.5).turns()]
    assert all(abs(2 * one - both) <= 1 for one, both in zip(*halves, strict=True))
    with refused("Linear: factor is 0.0; it must be a positive and finite number."):
        Linear(PLAIN, 0.0)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("length", [0, -1, 2.5, True, None, math.nan], ids=repr)
def test_a_trained_length_is_a_number_of_tokens(name, length):
    with refused(f"{name}: trained_length is {length!r}; it must be a whole number of tokens"):
        TRAINED[name](length)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: YaRN(PLAIN, 2.0, 64, 1.0, 32.0), "beta_slow is 32.0 and beta_fast 1.0 turns"),
        (lambda: YaRN(PLAIN, 2.0, 64, math.nan), "YaRN: beta_fast is nan; it must be a positive"),
        (lambda: YaRN(PLAIN, 2.0, 64, attention=-1.0), "YaRN: attention is -1.0; it must be a"),
        (lambda: YaRN(PLAIN, 2.0, 64, mscale=math.inf), "YaRN: mscale is inf; it must be a"),
        (lambda: YaRN(Geometric(8, 1.0), 2.0, 64), "YaRN: the base is 1.0; frequencies do not"),
        (lambda: Llama3(PLAIN, low=4.0, high=1.0), "low is 4.0 and high 1.0 turns; low must be"),
        (lambda: Llama3(PLAIN, low=math.nan), "Llama3: low is nan; it must be a positive"),
        (lambda: LongRoPE(PLAIN, ONES[:3], ONES, 64), "LongRoPE: short has 3 numbers for 4 freq"),
        (lambda: LongRoPE(PLAIN, ONES, (*ONES, 1.0), 64), "LongRoPE: long has 5 numbers for 4"),
        (lambda: LongRoPE(PLAIN, ONES, (0.0, 1, 1, 1), 64), "Divided: divisor is 0.0; it must be"),
        (lambda: LongRoPE(PLAIN, ONES, ONES, 1), "trained_length is 1; it must be a whole number of"
         " tokens from 2 on."),
        (lambda: LongRoPE(PLAIN, ONES, ONES, 64, 2, -1.0), "LongRoPE: attention is -1.0; it must"),
        (lambda: Divided(PLAIN, ONES, math.nan), "Divided: attention is nan; it must be a posit"),
        (lambda: NTK(Geometric(2), 2.0), "NTK divides by dim − 2; of has dim 2. Give 4 or more."),
        (lambda: Geometric(8, math.nan), "base is nan; it must be a positive and finite number"),
        (lambda: Geometric(8, math.inf), "base is inf; it must be a positive and finite number"),
        (lambda: Geometric(8, True), "base is True; it must be a positive and finite number"),
        (lambda: Geometric(8, "1e4"), "base is '1e4'; it must be a positive and finite number"),
        (lambda: Proportional(8, 1.5), "fraction is 1.5; it must be a share from 0 to 1."),
        (lambda: Proportional(8, math.nan), "fraction is nan; it must be a share from 0 to 1."),
        (lambda: Rotary(8, base=math.nan), "base is nan; it must be a positive and finite number"),
        (lambda: Rotary(7, base=100), "The rotated width is 7; channels turn in pairs, so it must"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(make, text):
    with refused(text):
        make()


@pytest.mark.parametrize("of", [PLAIN, YaRN(PLAIN, 4.0, 64), Divided(PLAIN, ONES, 0.5)], ids=repr)
@pytest.mark.parametrize("attention", [None, 1.25])
def test_longrope_has_the_attention_factor_of_its_schedules(of, attention):
    """A factor of the schedule that it rescales counts at every length, and in what it says."""
    longrope = LongRoPE(of, ONES, (2.0,) * 4, 4096, 4.0, attention)
    own = attention or math.sqrt(1 + math.log(4) / math.log(4096))
    assert longrope.attention_factor == pytest.approx(of.attention_factor * own, rel=1e-15)
    for length in (1, 4096, 4097):
        assert longrope.at(length).attention_factor == longrope.attention_factor


def test_selected_takes_indices_that_are_counted_once():
    selected = Selected(PLAIN, (i for i in (2, 0)))
    assert selected == Selected(PLAIN, (2, 0))
    assert selected.wavelengths() == (PLAIN.wavelengths()[2], PLAIN.wavelengths()[0])
    with refused("indices is {0, 2}; it must be several numbers, as a list", TypeError):
        Selected(PLAIN, {0, 2})
    with refused("indices are (0.5,); Geometric(dim=8, base=10000.0) has frequencies", IndexError):
        Selected(PLAIN, (0.5,))


def test_yarn_without_a_ramp_is_refused():
    """Its borders change places where all pairs are faster, or slower; public code goes on then:
    it interpolates all of the first and none of the second, the opposite of what is meant.
    """
    with refused(
        "every pair of Geometric(dim=8, base=2.0) turns more than beta_fast times in 4096"
    ):
        YaRN(Geometric(8, base=2.0), 4.0, 4096)
    with refused("every pair of Geometric(dim=128, base=10000.0) turns less than beta_slow times"):
        YaRN(Geometric(128), 4.0, 3)


def test_a_base_beside_a_schedule_is_refused():
    with refused("base is 500000 beside Geometric(dim=8, base=10000.0), which has its own.",
                 TypeError):  # fmt: skip
        Rotary(Geometric(8), base=500_000)
    assert Rotary(64, base=500_000).frequencies == Geometric(64, 500_000)
    assert Rotary(64, base=500_000) is not None
    assert repr(Rotary(64, base=5e5)) == "Rotary(Geometric(dim=64, base=500000.0))"


@given(factor=st.floats(1.0, 64.0), all_dim=st.sampled_from([None, 0.7, 1.0]))
def test_what_follows_from_the_fields_is_kept_with_them(factor, all_dim):
    """As ordinary numbers, so that a graph sees no decimal arithmetic; copies have them too."""
    yarn = YaRN(PLAIN, factor, 64, mscale=all_dim, mscale_all_dim=all_dim)
    kept = vars(yarn)
    assert type(kept["attention_factor"]) is type(kept["softmax_factor"]) is float
    other = dataclasses.replace(yarn, factor=2 * factor)
    assert other.softmax_factor >= yarn.softmax_factor
    assert dataclasses.replace(yarn) == yarn
    assert yarn.attention_factor == pytest.approx(1.0 if all_dim else 0.1 * math.log(factor) + 1)


def test_a_base_that_is_a_fraction_or_a_number_of_numpy_is_that_number():
    plain = Geometric(8, 10_000)
    for base in (Fraction(10_000), np.int64(10_000), np.float64(10_000)):
        assert Geometric(8, base).turns() == plain.turns()
        assert torch.equal(Geometric(8, base).float32("float32"), plain.float32("float32"))
    third = Geometric(2, Fraction(10_000, 3)), Geometric(4, Fraction(10_000, 3))
    assert third[0].turns()[0] == third[1].turns()[0]
    assert third[1].wavelengths()[1] == pytest.approx(2 * math.pi * (10_000 / 3) ** 0.5, rel=1e-15)


@pytest.mark.parametrize("empty", ["", [], {}, False])
@pytest.mark.parametrize("name", ["mscale", "mscale_all_dim", "attention"])
def test_what_is_empty_is_not_none(name, empty):
    with pytest.raises(ValueError, match=f"YaRN: {name} is "):
        YaRN(PLAIN, 2.0, 64, **{name: empty})
    assert YaRN(PLAIN, 2.0, 64, mscale=0) is not None  # none, as transformers reads it
