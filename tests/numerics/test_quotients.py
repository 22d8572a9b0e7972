"""Fractions of a turn, held against whole numbers of any size and against mpmath."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from posenc.numerics.phases import Phases
from posenc.numerics.quotients import LARGEST, added, quotient_cos_sin

WORDS = st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3)
TURN = 2**192


def joined(phase) -> int:
    high, middle, low = (int(word) % 2**64 for word in phase)
    return high << 128 | middle << 64 | low


@given(one=WORDS, other=WORDS)
def test_phases_are_added_modulo_one_turn(one, other):
    both = [Phases(*(torch.tensor(word) for word in words)) for words in (one, other)]
    assert joined(added(*both)) == (joined(one) + joined(other)) % TURN


@given(
    numerator=st.integers(-(2**62), 2**62),
    denominator=st.integers(1, LARGEST),
    turns=st.integers(1, 2**195),
)
def test_values_are_those_of_the_fraction(numerator, denominator, turns):
    cos, sin = quotient_cos_sin(
        torch.tensor([numerator]), torch.tensor([denominator]), (turns,), torch.float64
    )
    angle = Fraction(numerator * turns, denominator * TURN) % 1
    with mp.workdps(60):
        truth = mp.cos_sin(2 * mp.pi * angle.numerator / angle.denominator)
        for got, want in zip((cos, sin), truth, strict=True):
            # The phase is cut 96 digits behind the point; values are within 3 ulp beside that.
            assert abs(mp.mpf(got.item()) - want) <= abs(want) * 2**-50 + mp.mpf(2) ** -85


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_values_are_correctly_rounded(dtype):
    """DETR's y / (H + 1e-6) near quarters of a turn, where float64 has lost its digits."""
    rows = torch.tensor([4, 8, 40, 400, 4000])
    numerators, denominators = rows // 4 * 10**6, 10**6 * rows + 1
    cos, _ = quotient_cos_sin(numerators, denominators, (TURN,), dtype)
    for got, up, down in zip(cos.flatten(), numerators, denominators, strict=True):
        with mp.workdps(60):
            truth = mp.cos(2 * mp.pi * int(up) / int(down))
        below, above = (torch.nextafter(got, torch.tensor(end, dtype=dtype)).item()
                        for end in (-2.0, 2.0))  # fmt: skip
        middle = (mp.mpf(below) + got.item()) / 2, (mp.mpf(above) + got.item()) / 2
        assert middle[0] <= truth <= middle[1]
