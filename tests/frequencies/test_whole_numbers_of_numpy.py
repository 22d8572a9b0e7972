"""Schedules of numpy's whole numbers are those of Python's, to the last bit."""

import numpy as np
import pytest

from posenc.frequencies import (
    ByLength,
    DyNTK,
    DyYaRN,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    NTKByParts,
    Powers,
    RIFLEx,
    YaRN,
)

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
