"""Biases that are added are the sum of their tables, and one bias."""

import pytest
import torch

from posenc import FIRE, KERPLE, ALiBi, CoPE, ScoreBias, SwinBias, T5Bias

Q, K = range(5), range(7)


def test_a_sum_adds_the_tables():
    alibi, t5, fire = ALiBi(4), T5Bias(4), FIRE(4)
    both = alibi + t5
    assert torch.equal(both.table(Q, K), alibi.table(Q, K) + t5.table(Q, K))
    every = both + fire
    assert torch.equal(every.table(Q, K), alibi.table(Q, K) + t5.table(Q, K) + fire.table(Q, K))
    assert every.table(Q, K, dtype=torch.float64).dtype == torch.float64


def test_relative_biases_stay_relative():
    """So that backends that go by distance take them."""
    both = ALiBi(4) + KERPLE(4)
    assert both.has_profile
    distance = torch.arange(-2, 5)
    wanted = both.parts[0].profile(distance) + both.parts[1].profile(distance)
    assert torch.equal(both.profile(distance), wanted)
    mixed = ALiBi(4) + FIRE(4)
    assert isinstance(mixed, ScoreBias)
    assert not mixed.has_profile
    assert not mixed.is_relative
    assert (SwinBias(4) + SwinBias(4)).is_relative


def test_what_does_not_add_is_refused():
    with pytest.raises(ValueError, match="Biases of 4 and 8 heads"):
        ALiBi(4) + ALiBi(8)
    with pytest.raises(TypeError, match="unsupported operand"):
        ALiBi(4) + CoPE(4, 8, 3)
    with pytest.raises(TypeError, match="unsupported operand"):
        ALiBi(4) + 1.0
