"""Nothing that is public here is blamed, and what is true of it only nearly is told as a note."""

import pytest
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

OURS = [each for each in CLASSES if issubclass(each, INTERFACES)]
AT_DEFAULTS = [
    LearnedGrid(8, (4, 4), prefix=1),
    AxialLearned(8, (4, 4)),
    LogTemperature(2),
    QueryTemperature(16),  # whose neighbors share a row, as it says
]


@pytest.mark.slow("the contract battery for every class")
@pytest.mark.parametrize("encoding", OURS, ids=lambda each: each.__name__)
def test_no_encoding_of_ours_is_blamed(encoding):
    report = check(encoding, arguments=CLASSES[encoding])
    assert report.status == 0, report
    if encoding is ComRoPE:  # its angles round at 2^40, which is no counter-example
        (claims,) = (each for each in report.verdicts if each.question == "claims")
        assert (claims.outcome, claims.faults) == ("passed", ())


@pytest.mark.parametrize("encoding", AT_DEFAULTS, ids=lambda each: type(each).__name__)
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
