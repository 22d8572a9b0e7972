"""The contract battery on rotations that tokens choose by themselves."""

import pytest

from posenc import Rotary, SelectiveRoPE
from posenc.testing import Case, batteries

CASES = {
    "selective-rope": Case(
        SelectiveRoPE,
        {"heads": 4, "rotary": Rotary(8), "dim": 8, "rank": 3},
        {"rank": 2, "kernel": 2, "gate": True, "bias": True, "rotary": Rotary(8, base=10.0)},
        bitwise=False,
    ),
}

CHECKS = batteries(CASES)


@pytest.mark.parametrize("check", list(CHECKS.values()), ids=list(CHECKS))
def test_contract(check):
    check()
