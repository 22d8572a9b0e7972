"""Positional: each encoding in its place, and positions remapped before."""

import pytest
import torch

from posenc import (
    SHAPE,
    ALiBi,
    Learned,
    PoSE,
    Positional,
    Randomized,
    ReRoPE,
    Rotary,
)
from posenc.encodings.base import PositionRemapping
from posenc.positions import consecutive, grid


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Doubled(PositionRemapping):
    """Every second position."""

    training_only = False

    def __call__(self, positions, *, generator=None):
        return 2 * positions


def test_each_place_takes_one_or_several():
    alibi, rotary = ALiBi(4), Rotary(8)
    positional = Positional(Learned(8, 9), rotary, (alibi, alibi), [SHAPE(3), Doubled()])
    assert [len(getattr(positional, place)) for place in ("tokens", "queries_keys", "scores")] == [
        1,
        1,
        2,
    ]
    assert positional.positions[0] == SHAPE(3)
    again = Positional(positional.tokens, positional.queries_keys, positional.scores)
    assert again.scores[1] is alibi
    assert [name for name, _ in positional.named_parameters()] == ["tokens.0.weight"]


@pytest.mark.parametrize(
    ("place", "given", "told"),
    [
        ("tokens", ALiBi(4), "ALiBi was given for tokens; it belongs to scores"),
        ("scores", SHAPE(3), "SHAPE was given for scores; it belongs to positions"),
        ("positions", Rotary(8), "it belongs to queries_keys"),
        ("positions", ReRoPE(4), "it is no PositionRemapping"),
        ("positions", [SHAPE], "it is no PositionRemapping"),
        ("tokens", None, "it is no TokenEncoding"),
    ],
)
def test_what_acts_elsewhere_is_told_where(place, given, told):
    with pytest.raises(TypeError, match=told):
        Positional(**{place: given})


def test_remappings_apply_in_order():
    positional = Positional(positions=(Doubled(), SHAPE(10)))
    shifted = positional.remapped(range(4), generator=seeded())
    assert torch.equal(shifted - shifted[0], 2 * consecutive(4))
    first = Positional(positions=(SHAPE(10), Doubled())).remapped(range(4), generator=seeded())
    assert first[0] == 2 * shifted[0] > 0


def test_training_alone_or_always():
    positional = Positional(positions=(Randomized(99), SHAPE(10**6), PoSE(10**7))).eval()
    with pytest.raises(ValueError, match="positions run from"):  # PoSE takes whole rows
        positional.train().remapped(range(6))
    drawn = positional.eval().remapped(range(6), generator=seeded())
    assert torch.equal(drawn, Randomized(99)(range(6), generator=seeded()))
    for kind in (SHAPE(10**9), PoSE(10**9)):
        assert torch.equal(Positional(positions=kind).eval().remapped(range(6)), consecutive(6))
        assert not torch.equal(Positional(positions=kind).remapped(range(6)), consecutive(6))


def test_without_remappings_nothing_happens():
    points = grid(2, 3)[None]
    assert Positional().remapped(points) is points
    with pytest.raises(ValueError, match=r"SHAPE.* takes"):
        Positional(positions=SHAPE(3)).remapped(points)
    with pytest.raises(TypeError, match=r"positions are torch.float32"):
        Positional().remapped(torch.zeros(3))
