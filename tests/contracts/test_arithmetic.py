"""The contract battery on rotary encodings in the arithmetic of public implementations."""

import pytest

from posenc import Rotary
from posenc.testing import Case, batteries

CASES = {
    name: Case(
        Rotary,
        {"frequencies": 8, "arithmetic": name, "pairing": pairing, "head_dim": 12},
        {"base": 100.0, "frequencies": 12, "head_dim": 16, "rotated": "suffix",
         "heads_first": False, "arithmetic": "exact"},
    )
    for name, pairing in {"vllm": "half", "torchtitan": "interleaved", "llama.cpp": "half"}.items()
}  # fmt: skip
# Positions in float32 end at 2^24, there as in those implementations.
EVERY = {n: check for n, check in batteries(CASES).items() if not n.endswith("stay_distinct")}
CHECKS = {name: check for name, check in EVERY.items() if not check.compiles}
COMPILING = {name: check for name, check in EVERY.items() if check.compiles}


@pytest.mark.parametrize("check", list(CHECKS.values()), ids=list(CHECKS))
def test_contract(check):
    check()


@pytest.mark.slow("compiles each encoding several times")
@pytest.mark.parametrize("check", list(COMPILING.values()), ids=list(COMPILING))
def test_compiled_contract(check):
    check()
