"""The contract battery on every encoding of the queries-and-keys place."""

import pytest

from posenc import Geometric, Rotary
from posenc.testing import Case, battery

ROTARY_CHANGES = {
    "frequencies": Geometric(8, base=100.0),
    "head_dim": 16,
    "pairing": "interleaved",
    "rotated": "suffix",
    "heads_first": False,
    "arithmetic": "float32",
}


def without(changes: dict, name: str) -> dict:
    return {key: value for key, value in changes.items() if key != name}


CASES = {
    "rotary": Case(Rotary, {"frequencies": 8, "head_dim": 12}, ROTARY_CHANGES),
}
VARIANTS = {
    "rotary-whole": Case(
        Rotary, {"frequencies": 8, "rotated": "prefix"}, without(ROTARY_CHANGES, "rotated")
    ),
    "rotary-interleaved": Case(
        Rotary,
        {"frequencies": 8, "head_dim": 12, "pairing": "interleaved", "rotated": "suffix"},
        ROTARY_CHANGES | {"pairing": "half", "rotated": "prefix"},
    ),
    "rotary-seq-first": Case(
        Rotary,
        {"frequencies": 8, "head_dim": 12, "heads_first": False},
        ROTARY_CHANGES | {"heads_first": True},
        heads_first=False,
    ),
}


def checks(cases: dict[str, Case], **options):
    """Every check of every case, under names that say both."""
    return [
        pytest.param(check, id=f"{name}-{check}")
        for name, case in cases.items()
        for check in battery(case, **options)
    ]


@pytest.mark.parametrize("check", checks(CASES))
def test_contract(check):
    check()


@pytest.mark.parametrize("check", checks(VARIANTS, compiling=False))
def test_contract_of_every_variant(check):
    check()
