"""Nothing that is public here is blamed, and what is true of it only nearly is told as a note."""

import pytest
import torch
from tests.encodings.test_arguments import CLASSES

from posenc import (
    AxialLearned,
    ComRoPE,
    LearnedGrid,
    LogTemperature,
    QueryTemperature,
    Rotary,
    T5Bias,
)
from posenc.audit import check
from posenc.audit.encodings import INTERFACES
from posenc.testing import Case, differentiation

OURS = [each for each in CLASSES if issubclass(each, INTERFACES)]


@pytest.mark.slow("the contract battery for every class")
@pytest.mark.parametrize("encoding", OURS, ids=lambda each: each.__name__)
def test_no_encoding_of_ours_is_blamed(encoding):
    report = check(encoding, arguments=CLASSES[encoding])
    assert report.status == 0, report


@pytest.mark.parametrize(
    "encoding",
    [
        LearnedGrid(8, (4, 4), prefix=1),
        AxialLearned(8, (4, 4)),
        LogTemperature(2),
        QueryTemperature(16),  # whose neighbors share a row, as it says
    ],
    ids=lambda each: type(each).__name__,
)
def test_objects_at_their_defaults_are_not_blamed(encoding):
    """Tables of points are asked within them, temperatures beyond the floor from which they act."""
    report = check(encoding)
    assert (report.status, report.found) == (0, []), report
    assert len(report.not_asked) <= 6


def test_what_does_not_concern_an_encoding_has_not_passed():
    """Far distances share a row of T5's table, and it encodes no queries."""
    passed = {verdict.question for verdict in check(T5Bias(4)).passed}
    assert not {"neighbors-stay-distinct", "kept-rows-serve", "arguments-matter"} & passed
    assert "neighbors-stay-distinct" in {each.question for each in check(Rotary(8)).passed}


def test_many_parameters_are_differentiated_along_random_directions(monkeypatch):
    asked = []
    monkeypatch.setattr(
        torch.autograd, "gradcheck", lambda *_, fast_mode: asked.append(fast_mode) or True
    )
    for rows in (8, 8192):
        differentiation.gradients(Case(lambda rows=rows: LearnedGrid(8, (rows,)), limit=8))
    assert asked == [False, True]


@pytest.mark.slow("matrix exponentials")
def test_what_rounds_far_out_keeps_its_claims():
    """Angles of float64 are off by more than a millionth at 2^40: that is no counter-example."""
    report = check(ComRoPE, arguments=CLASSES[ComRoPE])
    claims = next(each for each in report.verdicts if each.question == "claims")
    assert (claims.outcome, claims.faults) == ("passed", ())
    # Whether a batch of exponentials rounds otherwise than one alone, the processor decides.
    assert {note.name for note in report.notes} <= {"neighbors-do-not-matter"}
