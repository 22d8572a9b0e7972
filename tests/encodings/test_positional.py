"""Positional: each encoding in its place, and positions remapped before."""

import copy
import pickle

import torch

from posenc import SHAPE, ALiBi, Learned, PoSE, Positional, Randomized, Rotary
from posenc.encodings.base import PositionRemapping
from posenc.positions import consecutive


class Doubled(PositionRemapping):
    """Every second position."""

    def __call__(self, positions, *, generator=None):
        return 2 * positions


def test_each_place_takes_one_or_several():
    alibi = ALiBi(4)
    positional = Positional(Learned(8, 9), Rotary(8), (alibi, alibi), [SHAPE(3), Doubled()])
    assert positional.positions[0] == SHAPE(3)
    again = Positional(positional.tokens, positional.queries_keys, positional.scores)
    assert again.scores[1] is alibi
    assert [name for name, _ in positional.named_parameters()] == ["tokens.0.weight"]
    for other in (copy.deepcopy(positional), pickle.loads(pickle.dumps(positional))):
        assert other.positions[0] == SHAPE(3)
        assert torch.equal(other.tokens[0].weight, positional.tokens[0].weight)


def test_remappings_apply_in_order():
    def drawn(*positions):
        generator = torch.Generator().manual_seed(0)
        return Positional(positions=positions).remapped(range(4), generator=generator)

    shifted = drawn(Doubled(), SHAPE(10))
    assert torch.equal(shifted - shifted[0], 2 * consecutive(4))
    assert drawn(SHAPE(10), Doubled())[0] == 2 * shifted[0] > 0


def test_training_alone_or_always():
    always, sometimes = Positional(positions=Randomized(99)), (SHAPE(10**9), PoSE(10**9))
    assert always.eval().remaps
    assert not torch.equal(always.remapped(range(6)), consecutive(6))
    for kind in sometimes:
        positional = Positional(positions=kind)
        assert not torch.equal(positional.remapped(range(6)), consecutive(6))
        assert torch.equal(positional.eval().remapped(range(6)), consecutive(6))
        assert not positional.remaps
