"""Values that float64 leaves in doubt, against mpmath."""

import random
from fractions import Fraction
from math import frexp, ulp

import pytest
import torch
from mpmath import mp, mpf
from tests.oracle import fraction

from posenc.numerics import exact
from posenc.numerics.exact import exact_value, round_for_certain
from posenc.numerics.phases import phases, turn_limbs

TURN = 1 << 192
NARROW = [torch.float32, torch.bfloat16, torch.float16]


def some_phases(count):
    """Of every size, on both sides of every eighth of a turn, and the eighths themselves."""
    draw = random.Random(1)
    for _ in range(count):
        near = draw.choice([0, 1, -1, draw.getrandbits(draw.randint(1, 189))])
        yield (draw.randrange(8) * TURN // 8 + draw.choice([-1, 1]) * near) % TURN


def truth(phase, sine, factor):
    with mp.workdps(150):
        angle = 2 * mp.pi * mpf(phase) / TURN
        return factor * (mp.sin(angle) if sine else mp.cos(angle))


@pytest.mark.parametrize("factor", [1.0, 1.3465735902799727, -0.5])
@pytest.mark.parametrize("sine", [False, True])
def test_a_value_is_rounded_to_odd(sine, factor):
    """The float64 next to the truth that ends in 1, on one side of it or the other."""
    for phase in some_phases(600):
        got, true = exact_value(phase, sine, factor), truth(phase, sine, factor)
        if phase % (TURN // 4) == 0:  # the only values that are numbers of few digits
            assert got == factor * round(true / factor)
            continue
        assert 0 < abs(Fraction(got) - fraction(true)) < Fraction(ulp(got))
        assert int(abs(frexp(got)[0]) * 2**53) % 2 == 1


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_all_values_may_be_in_doubt(oracle, dtype, monkeypatch):
    """Each of them then comes from integers; a batch of equal ones is computed once."""
    monkeypatch.setattr(exact, "DOUBT", 0.3)
    computed = []
    once = exact.exact_value
    monkeypatch.setattr(exact, "exact_value", lambda *of: computed.append(of) or once(*of))
    turns = tuple(random.Random(2).getrandbits(190) for _ in range(5))
    positions = torch.tensor([0, 3, -7, 2**62 + 1, 3]).expand(6, 5)
    made = round_for_certain(phases(positions[..., None], turn_limbs(turns)), dtype, 1.25)
    for values, sine in zip(made, (False, True), strict=True):
        assert torch.equal(values, values[:1].expand_as(values))
        for row, position in enumerate(positions[0].tolist()):
            for column, turn in enumerate(turns):
                wanted = oracle.nearest(truth(position * turn % TURN, sine, 1.25), dtype)
                assert values[0, row, column].item() == wanted
    assert len(computed) == len(set(computed)) <= 2 * 4 * len(turns)


def test_a_tie_is_a_tie():
    """cos 0 times a factor that lies halfway goes to the even neighbor, whatever the series say."""
    none = torch.zeros(1, dtype=torch.int64)
    phase = phases(none, turn_limbs((0,)))
    for factor, wanted in ((1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6)):
        assert round_for_certain(phase, torch.bfloat16, factor)[0].item() == wanted
