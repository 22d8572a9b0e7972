"""Which encodings stand beside which: what would make numbers of another meaning is refused."""

import pytest
import torch

from posenc import (
    ALiBi,
    AxialRotary,
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
from posenc.transformer import Encoder

REMAPPED = RemappedRotary(2, Rotary(8), SelfExtend(group=2, window=4))
ANEW = {"remapped": REMAPPED, "repo": RePo(2, Rotary(8), 16),
        "selective": SelectiveRoPE(2, Rotary(8), 16)}  # fmt: skip
OTHERS = [
    Rotary(8, base=500_000.0), Rotary(8, pairing="interleaved"), Rotary(4, head_dim=8),
    Rotary(8, arithmetic="float32"), XPos(Rotary(8)), AxialRotary(8),
    (Rotary(8), Rotary(8, base=7.0)),
]  # fmt: skip


@pytest.mark.parametrize("name", ANEW)
def test_scores_that_are_computed_anew_come_first(name):
    with pytest.raises(ValueError, match="computes scores anew"):
        Positional(scores=(ALiBi(2), ANEW[name]))
    assert len(Positional(scores=(ANEW[name], ALiBi(2))).scores) == 2


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("name", ANEW)
def test_another_rotation_does_not_stand_beside_them(name, other):
    with pytest.raises(ValueError, match=r"rotates further|would change them before"):
        Positional(queries_keys=other, scores=ANEW[name])


def test_an_equal_rotation_and_one_that_was_done_before():
    """A model may rotate its queries and keys itself; an encoder says where it does."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 12, 8, dtype=torch.float64)
    rotary = Rotary(8)
    wanted = attention(q, k, v, positional=Positional(queries_keys=rotary, scores=REMAPPED))
    table = rotary.table(range(12), dtype=torch.float64)
    before = rotary.encode_queries(q, table), rotary.encode_keys(k, table)
    for given in ((), QueryTemperature(8)):
        done = Positional(queries_keys=given, scores=REMAPPED)
        torch.testing.assert_close(attention(*before, v, positional=done), wanted)
    with pytest.raises(ValueError, match="changed by nothing"):
        Encoder(16, 2, 1, positional=Positional(scores=REMAPPED))
