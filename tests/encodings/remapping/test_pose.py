"""PoSE: two runs, a gap between them, and all cuts and skips equally likely."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import PoSE
from posenc.positions import consecutive


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cuts_and_skips(seq: int, longest: int, draws: int = 20_000):
    rows = PoSE(longest)(consecutive(seq).expand(draws, seq), generator=seeded())
    skips = rows[:, -1] - (seq - 1)
    cuts = (rows == consecutive(seq)).sum(-1)
    return cuts[skips > 0], skips


@given(st.integers(1, 40), st.integers(0, 1000), st.integers(0, 2**31))
def test_a_row_is_two_runs_in_range(seq, room, seed):
    drawn = PoSE(seq + room)(consecutive(seq), generator=seeded(seed))
    assert drawn.dtype == torch.int64
    assert drawn[0] == 0
    assert drawn[-1] < seq + room
    steps = drawn.diff()
    assert (steps >= 1).all()
    assert (steps > 1).sum() <= 1


def test_cuts_are_uniform_over_the_first_half():
    # The authors' code: random.randint(1, (length + 1) // 2).
    for seq, last in ((8, 4), (9, 5), (2, 1)):
        cuts, _ = cuts_and_skips(seq, 1000)
        values, counts = cuts.unique(return_counts=True)
        assert values.tolist() == list(range(1, last + 1))
        torch.testing.assert_close(
            counts.double() / len(cuts), torch.full((last,), 1 / last).double(), atol=0.02, rtol=0
        )


def test_skips_are_uniform_up_to_the_room_left():
    # The authors' code: random.randint(0, longest − length).
    _, skips = cuts_and_skips(8, 12)
    values, counts = skips.unique(return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(counts / 20_000.0, torch.full((5,), 0.2), atol=0.02, rtol=0)
