"""SHAPE: one shift a row, all equally likely, and invisible to what is relative."""

import torch

from posenc import SHAPE
from posenc.positions import consecutive


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_shifts_are_uniform_both_ends_included():
    rows = SHAPE(4)(consecutive(3).expand(20_000, 3), generator=seeded())
    assert torch.equal(rows - rows[:, :1], consecutive(3).expand(20_000, 3))
    values, counts = rows[:, 0].unique(return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(counts / 20_000.0, torch.full((5,), 0.2), atol=0.02, rtol=0)
