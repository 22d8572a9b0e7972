"""The battery must fail what is wrong: each fault is caught by the checks named for it."""

import pytest
import torch
from tests.testing.broken import COARSE, SUBTLE, USUAL, Broken, DividesByItsRow

from posenc import Learned, ScoreBias, Sinusoidal, Temperature
from posenc.audit import check as check_encoding
from posenc.testing import Case, battery

SLOW = pytest.mark.slow("a battery for each fault", spares=3)
ROWS = [
    pytest.param(row, name, id=f"{row.kind.__name__}-{name}", marks=SLOW if row in SUBTLE else ())
    for row in (*COARSE, *SUBTLE)
    for name in row.checks
]
BY_NAME = {row.kind.__name__: row for row in (*COARSE, *SUBTLE)}


def ask(name, case):
    (check,) = [check for check in battery(case) if check.name == name]
    return check()


@pytest.mark.parametrize(("row", "name"), ROWS)
def test_a_broken_encoding_is_caught(row: Broken, name):
    graph = row.kind.__name__ == "BreaksTheGraph"  # whose error is torch's own
    with pytest.raises(Exception if graph else AssertionError):
        ask(name, row.case)


@pytest.mark.parametrize("kind", [each for each in USUAL if each is not Temperature])
def test_what_they_derive_from_passes(kind):
    arguments = USUAL[kind]
    case = Case(lambda: kind(**arguments), limit=arguments.get("max_len"), bitwise=False)
    for check in battery(case, compiling=False):
        check()


def test_a_forgotten_argument_is_named():
    with pytest.raises(AssertionError, match="no value for base, convention"):
        ask("arguments_matter", Case(Sinusoidal, {"dim": 8}))


def test_a_wrong_gradient_is_a_fault_to_whoever_checks():
    """It is no question that could not be asked."""
    report = check_encoding(BY_NAME["WrongGradientOfLaterTokens"].kind(4))
    assert "gradients" in {fault.name for fault in report.faults}


def test_what_reads_later_keys_says_so_and_is_not_asked_to_decode():
    case = Case(DividesByItsRow, {"heads": 4, "reads_later": True}, bitwise=False)
    assert "reads_later" in ask("prefill_equals_decoding", case)
    assert ask("sharded", case) is None


# Few positions are no fault.

CHANGES = {"offset": 1, "std": 0.5, "dropout": 0.1, "batch_first": False}


@pytest.mark.parametrize(
    ("name", "limit"), [("neighbors_stay_distinct", 263), ("arguments_matter", 212)]
)
def test_no_check_asks_past_the_last_position(name, limit):
    assert ask(name, Case(Learned, {"dim": 8, "max_len": limit}, CHANGES, limit=limit)) is None


@pytest.mark.parametrize("limit", [2, 3, 8, 12])
def test_few_positions_are_no_fault(limit):
    case = Case(Learned, {"dim": 4, "max_len": limit}, CHANGES, limit=limit)
    for check in battery(case, compiling=False):
        check()
    one = Case(Learned, {"dim": 4, "max_len": 1}, limit=1)
    assert "it has 1 positions" in ask("purity", one)
    with pytest.raises(IndexError):  # which it says it has
        ask("rows_stand_alone", Case(Learned, {"dim": 4, "max_len": 9}, limit=13))


class Absolute(ScoreBias):
    """A bias of where the query stands, which says what it is told of itself."""

    def __init__(self, heads, is_relative):
        super().__init__()
        self.heads, self.is_relative = heads, is_relative

    def table(self, q_positions, k_positions, *, dtype=None):
        there = q_positions.double().sin().unsqueeze(-1) + 0 * k_positions.unsqueeze(-2)
        return there.to(dtype or torch.float32).unsqueeze(-3).expand(self.heads, *there.shape)


@pytest.mark.parametrize("limit", [6, 13, 301, 5001])
def test_a_claim_is_asked_up_to_the_last_position(limit):
    true, false = (
        Case(Absolute, {"heads": 4, "is_relative": each}, limit=limit) for each in (False, True)
    )
    if limit == 6:  # nothing can be shifted
        assert "is_relative" in ask("claims", true)
        assert "is_relative" in ask("claims", false)
        return
    assert ask("claims", true) is None
    with pytest.raises(AssertionError, match="is_relative is True"):
        ask("claims", false)


@pytest.mark.parametrize(("dim", "limit"), [(16, 16), (128, 40), (256, 77)])
def test_few_rows_are_no_counter_example_of_a_shift(dim, limit):
    """So few that half of them leave the map open, which then errs on the others."""
    told = ask("claims", Case(Sinusoidal, {"dim": dim}, limit=limit))
    assert told == "too few positions to check keeps_shift"
