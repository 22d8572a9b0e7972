"""Biases that are added are the sum of their tables; the bias of some heads is a slice of it."""

import copy

import pytest
import torch

from posenc import FIRE, KERPLE, ALiBi, SwinBias, T5Bias
from posenc.encodings.bias import bias_apart

DISTANCE = torch.arange(-3, 9)
Q, K = range(5), range(7)


def test_a_sum_adds_tables_and_profiles():
    alibi, kerple, fire = ALiBi(4), KERPLE(4), FIRE(4)
    both, every = alibi + kerple, alibi + kerple + fire
    assert torch.equal(both.profile(DISTANCE), alibi.profile(DISTANCE) + kerple.profile(DISTANCE))
    assert torch.equal(every.table(Q, K), both.table(Q, K) + fire.table(Q, K))
    assert (both.has_profile, every.has_profile, every.is_relative) == (True, False, False)
    assert (SwinBias(4) + SwinBias(4)).is_relative


@pytest.mark.parametrize("heads", [slice(2, 4), slice(None, None, 3), slice(-2, None), 5, -1])
@pytest.mark.parametrize("bias", [ALiBi(6), T5Bias(6), ALiBi(6) + T5Bias(6)], ids=["a", "t", "a+t"])
def test_a_part_is_the_slice_of_the_whole_bit_for_bit(bias, heads):
    part, rows = bias[heads], range(6)[heads]
    wanted = bias.profile(DISTANCE)[list(rows) if isinstance(rows, range) else [rows]]
    assert torch.equal(part.profile(DISTANCE), wanted)
    assert part.heads == len(wanted)


def test_parameters_are_those_of_the_whole():
    bias = T5Bias(4)
    part = bias[1:3]
    assert part.of.weight is bias.weight
    part.profile(DISTANCE).sum().backward()
    assert bias.weight.grad[:, [0, 3]].count_nonzero() == 0
    assert bias.weight.grad[:, 1:3].count_nonzero() > 0
    assert copy.deepcopy(part).chosen == range(1, 3)


def test_heads_apart_have_the_slopes_that_they_had():
    whole = ALiBi(8, alibi_bias_max=4.0)
    assert bias_apart(whole, slice(2, 4)).slopes == whole.slopes[2:4]
