"""Real coordinates are encoded exactly, or refused."""

from fractions import Fraction

import torch
from torch import Tensor

from posenc.positions import Coordinates
from posenc.testing.cases import Case, Scores
from posenc.testing.compare import assert_differs, assert_same

HALF = Fraction(1, 2)


def reals(case: Case) -> None:
    """Whole coordinates equal whole positions and halves lie between them, or all are refused."""
    module, subject = case.module(), case.subject()
    positions = torch.tensor([0, 1, 4, 9, *case.far(2**24 + 1, 2**40 + 1)])
    points = subject.lifted(positions)
    whole, finer = Coordinates(points), Coordinates(2 * points, scale=HALF)
    if not module.takes_reals:
        try:
            _table(case, whole)
        except TypeError:
            return
        raise AssertionError("takes_reals is False, but real coordinates were not refused")
    table = subject.tables(module, positions)
    assert_same((_table(case, whole),), (table,), "whole coordinates", bitwise=True)
    assert_same((_table(case, finer),), (table,), "whole numbers of halves", bitwise=False)
    between = _table(case, whole + HALF, whole)
    for step in (0, 1):
        neighbor = _table(case, whole + step, whole)
        assert_differs((between,), (neighbor,), "a half was rounded to a whole position")
    content = subject.content(len(positions))
    got, want = (subject.run(module, content, each) for each in (finer, positions))
    assert_same(got, want, "content at coordinates", bitwise=False)


def _table(case: Case, points: Coordinates, others: Coordinates | None = None) -> Tensor:
    """The table at ``points``; that of a score encoding between these and ``others``."""
    paired = isinstance(case.subject(), Scores)
    both = (points, points if others is None else others) if paired else (points,)
    return case.module().table(*both)  # type: ignore[operator]
