"""SHAPE: one shift a row, all equally likely, and invisible to what is relative."""

import pytest
import torch

from posenc import SHAPE, ALiBi
from posenc.positions import consecutive, left_padded


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_shifts_are_uniform_both_ends_included():
    rows = SHAPE(4)(consecutive(3).expand(20_000, 3), generator=seeded())
    assert torch.equal(rows - rows[:, :1], consecutive(3).expand(20_000, 3))
    values, counts = rows[:, 0].unique(return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(counts / 20_000.0, torch.full((5,), 0.2), atol=0.02, rtol=0)


def test_the_repository_draws_one_value_less():
    """The paper's shift reaches K; ``torch.randint(0, K)`` of the code does not."""
    paper, code = SHAPE(4), SHAPE(4 - 1)
    for kind, last in ((paper, 4), (code, 3)):
        rows = kind(consecutive(1).expand(2_000, 1), generator=seeded())
        assert rows.unique().tolist() == list(range(last + 1))


def test_a_relative_encoding_does_not_see_it():
    shifted = SHAPE(10**6)(consecutive(9), generator=seeded())
    assert shifted[0] > 0
    alibi = ALiBi(4)
    assert torch.equal(alibi.table(shifted, shifted), alibi.table(consecutive(9), consecutive(9)))


def test_one_draw_for_each_row():
    rows = SHAPE(1000)(consecutive(5).expand(3, 5), generator=seeded())
    assert len(rows.unique(dim=0)) == 3
    assert SHAPE(1000)(consecutive(5), generator=seeded()).shape == (5,)


def test_a_shift_of_at_most_nothing_is_none():
    positions = left_padded(torch.tensor([[False, True, True]]))
    assert torch.equal(SHAPE(0)(positions, generator=seeded()), positions)


def test_the_largest_shift_stays_within_int64():
    rows = SHAPE(2**62)(consecutive(2).expand(1000, 2), generator=seeded())
    assert rows.min() >= 0


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match="most is -1; it must be a whole number from 0 on"):
        SHAPE(-1)
