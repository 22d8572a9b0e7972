"""Nothing that is public here is blamed, and what is true of it only nearly is told as a note."""

import pytest
from tests.encodings.test_arguments import SOUND

from posenc import ComRoPE, QueryTemperature
from posenc.audit import check
from posenc.audit.encodings import INTERFACES

OURS = [each for each in SOUND if issubclass(each, INTERFACES)]


@pytest.mark.slow("the contract battery for every class")
@pytest.mark.parametrize("encoding", OURS, ids=lambda each: each.__name__)
def test_no_encoding_of_ours_is_blamed(encoding):
    report = check(encoding, arguments=SOUND[encoding])
    assert report.status == 0, report


def test_neighbors_that_share_a_row_as_they_say_are_no_fault():
    report = check(QueryTemperature, arguments=SOUND[QueryTemperature])
    assert (report.status, report.notes) == (0, [])


@pytest.mark.slow("matrix exponentials")
def test_what_holds_near_the_start_alone_is_a_note():
    report = check(ComRoPE, arguments=SOUND[ComRoPE])
    assert [note.name for note in report.notes] == ["claims"]
    assert "below 2^18" in report.notes[0].said
