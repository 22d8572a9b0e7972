"""Schedules of numpy's whole numbers are those of Python's, to the last bit."""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
import torch

from posenc import Rotary
from posenc.frequencies import (
    NTK,
    ByLength,
    Clipped,
    Divided,
    DynamicNTK,
    DyNTK,
    DyYaRN,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    NTKByParts,
    Powers,
    Proportional,
    RIFLEx,
    TurnsPerUnit,
    YaRN,
)
from posenc.frequencies.schedule import Schedule
from posenc.frequencies.selected import Selected
from posenc.numerics.arithmetic import PROFILES

PLAIN, ONES, TWOS = Geometric(8), (1.0,) * 4, (2.0,) * 4

MADE = {
    "ByLength.yarn": lambda two, length: ByLength.yarn(PLAIN, length, (two,)).at(length * two),
    "DyNTK": lambda two, length: DyNTK(PLAIN, length, exponent=two).at(length * two, time=0.5),
    "DyYaRN": lambda two, length: DyYaRN(PLAIN, length, exponent=two).at(length * two, time=0.5),
    "Linear": lambda two, _: Linear(PLAIN, two),
    "Llama3": lambda two, length: Llama3(PLAIN, two, trained_length=length),
    "LongRoPE": lambda two, length: LongRoPE(PLAIN, ONES, TWOS, length, two).at(length * two),
    "NTKByParts": lambda two, length: NTKByParts(PLAIN, two, length),
    "Powers": lambda two, length: Powers(length, (0 * two, two), 2 * two),
    "RIFLEx": lambda two, length: RIFLEx(PLAIN, k=two, length=length),
    "YaRN": lambda two, length: YaRN(PLAIN, two, length),
}


@pytest.mark.parametrize("name", MADE)
def test_the_kind_of_a_number_changes_nothing(name):
    plain, others = MADE[name](2, 64), MADE[name](np.int64(2), np.int32(64))
    assert others.turns() == plain.turns()
    assert others.attention_factor == plain.attention_factor


def schedules(n: Callable, count: Callable) -> dict[str, Schedule]:
    """Every kind of them: ``n`` makes its numbers, and ``count`` what counts something."""
    plain = Geometric(count(8), n(100))
    steps = ((count(8), plain), (count(99), Linear(plain, n(2))))
    return {
        "ByLength": ByLength(steps).at(count(80)),
        "Clipped": Clipped(plain, count(100)),
        "Divided": Divided(plain, (n(1), n(1), n(2), n(4)), n(2)),
        "DyNTK": DyNTK(plain, count(64), n(2), n(2)).at(count(100), n(1)),
        "DyYaRN": DyYaRN(plain, count(64), n(2), n(2)).at(count(100), n(1)),
        "DynamicNTK": DynamicNTK(plain, 100, 64).at(127),
        "FromCheckpoint": FromCheckpoint([n(1), n(2)]),
        "Geometric": plain,
        "Linear": Linear(plain, n(2)),
        "Llama3": Llama3(plain, n(2), n(1), n(4), count(100)),
        "LongRoPE": LongRoPE(plain, (n(1),) * 4, (n(2),) * 4, count(64), n(2), n(3)).at(count(99)),
        "NTK": NTK(plain, n(100)),
        "NTKByParts": NTKByParts(plain, n(2), count(64), (n(2), n(1)), (n(8), n(4))),
        "Powers": Powers(n(100), (n(0), n(100)), n(101)),
        "Powers by a float": Powers(n(100), (n(0), n(100)), 101.0),
        "Proportional": Proportional(count(120), 0.25, n(100)),
        "RIFLEx": RIFLEx(plain, count(1), count(64), n(1)),
        "Selected": Selected(plain, (count(1), count(0))),
        "TurnsPerUnit": TurnsPerUnit((n(1), n(2))),
        "YaRN": YaRN(plain, n(2), count(64), n(4), n(1), mscale=n(2), mscale_all_dim=n(1)),
        "YaRN of a factor": YaRN(plain, n(2), count(64), n(4), n(1), attention=n(2)),
    }


def tables(schedule: Schedule) -> dict[str, torch.Tensor]:
    """By every arithmetic that has the schedule."""
    made = {}
    for name in ("exact", "float32", "float32-log", *PROFILES):
        with suppress(ValueError):  # of an implementation without such a schedule
            made[name] = Rotary(schedule, arithmetic=name).table([3, 70])
    return made


@pytest.mark.parametrize(
    ("n", "count"),
    [
        *((kind, kind) for kind in (np.uint8, np.int8, np.int32, np.uint64)),
        (np.float32, int),
        (Fraction, int),
        (lambda n: Fraction(np.int8(n)), int),
    ],
    ids=["uint8", "int8", "int32", "uint64", "float32", "Fraction", "Fraction of int8"],
)
def test_a_number_of_any_kind_is_the_number_that_it_is(n, count):
    """None wraps, and every arithmetic computes with it."""
    usual = schedules(int, int)
    for name, schedule in schedules(n, count).items():
        want = usual[name]
        assert schedule == want, name
        assert schedule.turns() == want.turns(), name
        factors = (schedule.attention_factor, schedule.softmax_factor)
        assert factors == (want.attention_factor, want.softmax_factor), name
        made, others = tables(schedule), tables(want)
        assert made.keys() == others.keys() >= {"exact", "float32", "float32-log"}, name
        assert all(map(torch.equal, made.values(), others.values())), name


@pytest.mark.parametrize("kind", [np.uint8, np.int32, lambda n: Fraction(np.int32(n))])
def test_what_would_wrap_is_refused_where_it_is_no_field_of_a_schedule(kind):
    """A factor of 64 at 70,000,000 tokens became one of 45,111 instead of 1,093,687."""
    with pytest.raises(ValueError, match="whose products wrap"):
        DynamicNTK(PLAIN, kind(64), 4096)
    if kind is np.int32:
        with pytest.raises(ValueError, match=r"trained_length is np.int32.* products wrap"):
            DynamicNTK(PLAIN, 64, np.int32(4096))
        with pytest.raises(ValueError, match=r"length is np.int32.* products wrap"):
            DynamicNTK(PLAIN, 64, 4096).at(np.int32(70_000_000))
    made = DynamicNTK(PLAIN, 64, 4096).at(np.int64(70_000_000))
    assert made.factor == Fraction(64 * 70_000_000, 4096) - 63
