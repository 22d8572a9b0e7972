"""Distances around a ring: AfCycDesign's offsets, and rotary attention that they reach."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import CyclicOffset, Positional, RemappedRotary, Rotary, attention


@given(st.integers(1, 15), st.integers(1, 30))
def test_distances_are_the_shorter_of_two_ways(period, length):
    """The offset d, or d ± a turn, whichever is smaller; at a tie, that of the sign of d."""
    distance = CyclicOffset(period).distance(range(length), range(length))
    for p in range(length):
        for n in range(length):
            d = p - n
            ways = [d % period - period, d % period]
            nearest = min(ways, key=lambda way: (abs(way), way * d < 0))
            assert distance[p, n] == nearest


def test_turning_the_ring_changes_no_output():
    """A ring has no first token: attention of a rotated sequence is the rotated attention."""
    torch.manual_seed(0)
    rotary = Rotary(8)
    positional = Positional(queries_keys=rotary, scores=RemappedRotary(2, rotary, CyclicOffset(7)))
    q, k, v = torch.randn(3, 1, 2, 7, 8).double().unbind()
    whole = attention(q, k, v, positional=positional)
    rolled = attention(*(x.roll(3, dims=-2) for x in (q, k, v)), positional=positional)
    torch.testing.assert_close(rolled, whole.roll(3, dims=-2), rtol=1e-9, atol=1e-9)
    plain = Positional(queries_keys=rotary)
    rolled = attention(*(x.roll(3, dims=-2) for x in (q, k, v)), positional=plain)
    assert (rolled - attention(q, k, v, positional=plain).roll(3, dims=-2)).abs().max() > 1e-3
