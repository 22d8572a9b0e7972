"""Every schedule, bit for bit, against its formula written once more in mpmath."""

import pytest
from mpmath import mp, mpf

from posenc.frequencies import (
    NTK,
    Divided,
    DynamicNTK,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
)
from posenc.frequencies.schedule import TURN_BITS

BASE, DIM, PLAIN = 500_000.0, 64, Geometric(64, 500_000.0)


def powers(base, dim: int = DIM) -> list:
    return [mpf(base) ** (-mpf(i) / dim) for i in range(0, dim, 2)]


def ntk(factor) -> list:
    return powers(mpf(BASE) * mpf(factor) ** (mpf(DIM) / (DIM - 2)))


def yarn(factor, trained, truncate=True) -> list:
    low, high = (
        DIM * mp.log(trained / (turns * 2 * mp.pi)) / (2 * mp.log(BASE)) for turns in (32, 1)
    )
    if truncate:
        low, high = mp.floor(low), mp.ceil(high)
    ramp = [min(max((i - low) / (high - low), mpf(0)), mpf(1)) for i in range(DIM // 2)]
    return [w / factor * r + w * (1 - r) for w, r in zip(powers(BASE), ramp, strict=True)]


def llama3(factor, low, high, trained) -> list:
    def slowed(w):
        length = 2 * mp.pi / w
        if length < trained / mpf(high):
            return w
        if length > trained / mpf(low):
            return w / factor
        smooth = (trained / length - low) / (high - low)
        return (1 - smooth) * w / factor + smooth * w

    return [slowed(w) for w in powers(BASE)]


DIVISORS = tuple(1.0 + i / 7 for i in range(32))
FORMULAS = {
    "linear": (Linear(PLAIN, 3.7), lambda: [w / mpf(3.7) for w in powers(BASE)]),
    "ntk": (NTK(PLAIN, 3.7), lambda: ntk(3.7)),
    "dynamic": (DynamicNTK(PLAIN, 2.0, 4096).at(10_000), lambda: ntk(mpf(20_000) / 4096 - 1)),
    "yarn": (YaRN(PLAIN, 16.0, 8192), lambda: yarn(16, 8192)),
    "yarn, not truncated": (
        YaRN(PLAIN, 16.0, 8192, truncate=False),
        lambda: yarn(16, 8192, truncate=False),
    ),
    "llama3": (Llama3(PLAIN), lambda: llama3(8, 1, 4, 8192)),
    "longrope": (
        LongRoPE(PLAIN, DIVISORS, DIVISORS, 4096, factor=4.0).at(1),
        lambda: [w / mpf(e) for w, e in zip(powers(BASE), DIVISORS, strict=True)],
    ),
    "proportional": (
        Proportional(DIM, 0.25, BASE),
        lambda: [w if i < 8 else mpf(0) for i, w in enumerate(powers(BASE))],
    ),
    "nested": (
        Linear(Llama3(PLAIN), 2.0),
        lambda: [w / 2 for w in llama3(8, 1, 4, 8192)],
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_fixed_point_turns_are_rounded_once(name):
    schedule, formula = FORMULAS[name]
    with mp.workdps(130):
        want = tuple(int(mp.nint(w / (2 * mp.pi) * mpf(2) ** TURN_BITS)) for w in formula())
    assert schedule.turns() == want


@pytest.mark.parametrize(
    "schedule",
    [
        Linear(PLAIN, 1),
        NTK(PLAIN, 1.0),
        DynamicNTK(PLAIN, 8.0, 4096).at(4096),
        YaRN(PLAIN, 1.0, 4096),
        YaRN(PLAIN, 1.0, 4096, truncate=False, mscale=0.7, mscale_all_dim=1.0),
        Llama3(PLAIN, factor=1.0),
        Divided(PLAIN, (1.0,) * 32),
        Proportional(DIM, 1.0, BASE),
    ],
    ids=repr,
)
def test_factor_one_is_plain_bit_for_bit(schedule):
    assert schedule.turns() == PLAIN.turns()
    assert schedule.attention_factor == 1.0
    assert schedule.softmax_factor == 1.0


@pytest.mark.parametrize(
    ("schedule", "factor"),
    [
        (YaRN(PLAIN, 16.0, 8192), lambda: mp.log(16) / 10 + 1),
        (
            YaRN(PLAIN, 40.0, 4096, mscale=0.707, mscale_all_dim=1.0),
            lambda: (mpf(0.707) / 10 * mp.log(40) + 1) / (mp.log(40) / 10 + 1),
        ),
        (
            LongRoPE(PLAIN, DIVISORS, DIVISORS, 4096, factor=32.0),
            lambda: mp.sqrt(1 + mp.log(32) / mp.log(4096)),
        ),
    ],
)
def test_attention_factors_are_rounded_once(schedule, factor):
    with mp.workdps(60):
        assert schedule.attention_factor == float(factor())


def test_a_pair_that_turns_backwards_is_rescaled_as_one_that_turns_forwards():
    """Of frequencies that are kept, that lie between, and that are divided."""
    plain = [1.0, 0.002, 0.001]
    ahead, back = (Llama3(FromCheckpoint([sign * w for w in plain])) for sign in (1, -1))
    assert back.radians() == tuple(-w for w in ahead.radians())
    assert back.float32("float32").tolist() == [-w for w in ahead.float32("float32").tolist()]
    for schedule in (ahead, back):
        assert schedule.float32("float32").tolist() == pytest.approx(
            [float(w) for w in schedule.radians()], rel=1e-6
        )
