"""Which encodings stand beside which: what would make numbers of another meaning is refused."""

import pytest
import torch

from posenc import (
    DAPE,
    ALiBi,
    AxialRotary,
    Cyclic,
    Positional,
    QueryTemperature,
    RemappedRotary,
    RePo,
    Rotary,
    SelectiveRoPE,
    SelfExtend,
    XPos,
    attention,
)
from posenc.frequencies import Geometric, Linear
from posenc.transformer import Encoder

HEADS, WIDTH, DIM = 2, 8, 16
REMAPPING = SelfExtend(group=2, window=4)
ANEW = {
    "remapped": lambda: RemappedRotary(HEADS, Rotary(WIDTH), REMAPPING),
    "repo": lambda: RePo(HEADS, Rotary(WIDTH), DIM),
    "selective": lambda: SelectiveRoPE(HEADS, Rotary(WIDTH), DIM),
}
OTHERS = {
    "base": lambda: Rotary(WIDTH, base=500_000.0),
    "schedule": lambda: Rotary(Linear(Geometric(WIDTH), 2.0)),
    "pairing": lambda: Rotary(WIDTH, pairing="interleaved"),
    "part": lambda: Rotary(Geometric(4), head_dim=WIDTH),
    "arithmetic": lambda: Rotary(WIDTH, arithmetic="float32"),
    "kind": lambda: XPos(Rotary(WIDTH)),
    "axes": lambda: AxialRotary(WIDTH),
    "another besides": lambda: (Rotary(WIDTH), Rotary(WIDTH, base=7.0)),
}


@pytest.mark.parametrize("name", ANEW)
def test_what_came_before_is_not_lost_in_silence(name):
    with pytest.raises(ValueError, match="computes scores anew"):
        Positional(scores=(ALiBi(HEADS), ANEW[name]()))
    assert len(Positional(scores=(ANEW[name](), ALiBi(HEADS))).scores) == 2


@pytest.mark.parametrize("other", OTHERS)
def test_another_rotation_is_not_taken_further(other):
    with pytest.raises(ValueError, match="rotates further"):
        Positional(queries_keys=OTHERS[other](), scores=ANEW["remapped"]())


@pytest.mark.parametrize("name", ["repo", "selective"])
@pytest.mark.parametrize("other", OTHERS)
def test_what_rotates_itself_is_given_nothing_rotated(name, other):
    with pytest.raises(ValueError, match="would change them before"):
        Positional(queries_keys=OTHERS[other](), scores=ANEW[name]())
    Positional(queries_keys=QueryTemperature(WIDTH), scores=ANEW[name]())


def test_an_equal_rotation_and_one_that_was_done_before():
    """A model may rotate its queries and keys itself; an encoder says where it does."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, HEADS, 12, WIDTH, dtype=torch.float64)
    rotary, remapped = Rotary(WIDTH), ANEW["remapped"]()
    both = Positional(queries_keys=(rotary, QueryTemperature(WIDTH)), scores=remapped)
    assert len(both.queries_keys) == 2
    wanted = attention(q, k, v, positional=Positional(queries_keys=rotary, scores=remapped))
    table = rotary.table(range(12), dtype=torch.float64)
    before = rotary.encode_queries(q, table), rotary.encode_keys(k, table)
    for given in ((), QueryTemperature(WIDTH)):
        done = Positional(queries_keys=given, scores=remapped)
        torch.testing.assert_close(attention(*before, v, positional=done), wanted)
    with pytest.raises(ValueError, match="changed by nothing"):
        Encoder(DIM, HEADS, 1, positional=Positional(scores=remapped))


class BesideARotation(ALiBi):
    """A caller's own bias, that refuses to stand alone."""

    def check_beside(self, queries_keys, *, rotated_before=True):
        if not queries_keys:
            raise ValueError("it wants a rotation")


@pytest.mark.parametrize("hold", [
    lambda bias: bias, lambda bias: bias + ALiBi(HEADS), lambda bias: bias[:HEADS],
    lambda bias: DAPE(HEADS, bias), lambda bias: Cyclic(HEADS, bias, 5),
])  # fmt: skip
def test_what_a_held_bias_refuses_is_refused(hold):
    bias = hold(BesideARotation(HEADS))
    with pytest.raises(ValueError, match="it wants a rotation"):
        Positional(scores=bias)
    Positional(queries_keys=Rotary(WIDTH), scores=bias)
