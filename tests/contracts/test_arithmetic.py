"""The contract battery on rotary encodings in the arithmetic of public implementations."""

from tests.contracts.checks import COMPILING, contract

from posenc import Rotary
from posenc.testing import Case

CASES = {
    name: Case(
        Rotary,
        {"frequencies": 8, "arithmetic": name, "pairing": pairing, "head_dim": 12},
        {
            "base": 100.0,
            "frequencies": 12,
            "head_dim": 16,
            "rotated": "suffix",
            "heads_first": False,
            "arithmetic": "exact",
        },
    )
    for name, pairing in {"vllm": "half", "torchtitan": "interleaved", "llama.cpp": "half"}.items()
}
# Positions in float32 end at 2^24, there as in those implementations.
test_contract = contract(CASES, compiling=False, leaving="stay_distinct")
test_compiled_contract = contract(CASES, COMPILING, compiling=True)
