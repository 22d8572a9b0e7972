"""Real coordinates are encoded exactly, or refused."""

from fractions import Fraction

import torch

from posenc.positions import Coordinates
from posenc.testing.cases import Scores, Subject
from posenc.testing.compare import assert_differs, assert_same

HALF = Fraction(1, 2)


def reals(subject: Subject) -> None:
    """Whole coordinates equal whole positions and halves lie between them, or all are refused."""
    positions = torch.tensor([0, 1, 4, 9, *subject.case.far(2**24 + 1, 2**40 + 1)])
    points = subject.lifted(positions)
    whole, finer = Coordinates(points), Coordinates(2 * points, scale=HALF)
    if not subject.module.takes_reals:
        try:
            subject.tables(whole)
        except TypeError:
            return
        raise AssertionError("takes_reals is False, but real coordinates were not refused")
    table = subject.tables(positions)
    assert_same(subject.tables(whole), table, "whole coordinates", bitwise=True)
    assert_same(subject.tables(finer), table, "whole numbers of halves", bitwise=False)

    others = (whole,) if isinstance(subject, Scores) else ()
    between, *neighbors = (
        subject.module.table(whole + step, *others) for step in (HALF, Fraction(0), Fraction(1))
    )
    for neighbor in neighbors:
        assert_differs((between,), (neighbor,), "a half was rounded to a whole position")
    content = subject.content(len(positions))
    got, want = (subject.run(content, each) for each in (finer, positions))
    assert_same(got, want, "content at coordinates", bitwise=False)
