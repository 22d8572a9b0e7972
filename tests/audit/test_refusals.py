"""What cannot be checked, and is said instead of blamed."""

import math
import re

import pytest
import torch
from tests.audit.zoo.arithmetic import apart
from tests.audit.zoo.right.added import Annotated, Tutorial
from tests.audit.zoo.specimen import changed
from torch import nn

from posenc.audit import CannotCheckError, check


class Asking(nn.Module):
    def __init__(self, what):
        super().__init__()


class AsWideAsLong(nn.Module):
    """Tokens and positions of width 64, up to 64 of them: what comes is a square."""

    def __init__(self, block_size=64, width=64):
        super().__init__()
        self.block_size = block_size
        self.tokens, self.places = nn.Embedding(100, width), nn.Embedding(block_size, width)

    def forward(self, ids):
        return self.tokens(ids) + self.places(torch.arange(ids.shape[-1]))


class ZerosAdded(nn.Module):
    """A table that is not trained yet."""

    def __init__(self, *shape):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(shape))

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class ZerosOfScores(ZerosAdded):
    def forward(self, q_len, k_len):
        return self.table[apart(q_len, k_len).clamp(-20, 20) + 20].permute(2, 0, 1)


class Map(nn.Module):
    """A map of 64 channels, which is asked for no size."""

    def __init__(self):
        super().__init__()
        self.map = nn.Parameter(torch.randn(1, 64, 16, 16))

    def forward(self):
        return self.map


# Ids without a batch: of one row of a batch, all stand at place 0.
ONE_ROW = changed(
    AsWideAsLong, "OneRow",
    forward=lambda s, of, ids: s.tokens(ids) + s.places(torch.arange(len(ids))),
)  # fmt: skip
DROPS_IN_EVAL = changed(
    Annotated, "DropsInEval", forward=lambda s, of, x: nn.functional.dropout(of(x), p=0.1)
)
NORMALIZED = changed(
    Annotated, "Normalized", forward=lambda s, of, x: nn.functional.layer_norm(of(x), (32,))
)
SLOW = pytest.mark.slow("more of its kind", spares=3)
CASES = [
    (math.pi, {}, "no form that is known"),
    (Asking, {}, "could not be built or copied"),
    (Annotated, {"call": "[subject, x]"}, "list"),
    (Annotated, {"call": "subject("}, "no expression"),
    (AsWideAsLong, {}, "as ids of tokens do"),
    (ONE_ROW, {}, "as ids of tokens do"),
    (Map, {}, 'kind="bias" and call='),
    (Map, {"kind": "bias"}, 'kind="bias" and call='),
    pytest.param(NORMALIZED, {}, "otherwise than by a sum", marks=SLOW),
    pytest.param(DROPS_IN_EVAL, {}, "other numbers at each call", marks=SLOW),
]


@pytest.mark.parametrize(("thing", "options", "said"), CASES)
def test_what_cannot_be_checked(thing, options, said):
    with pytest.raises(CannotCheckError, match=re.escape(said)):
        check(thing, **options)


@pytest.mark.parametrize("options", [{"kind": "words"}, {"layout": "xyz"}, {"only": ["clamp"]}])
def test_names_that_are_not_known(options):
    with pytest.raises(ValueError, match="is no"):
        check(Tutorial, **options)


@pytest.mark.parametrize("thing", [ZerosAdded(64, 32), ZerosOfScores(41, 4)])
def test_a_table_of_zeros_tells_nothing_and_is_not_blamed(thing):
    with pytest.raises(CannotCheckError, match="of zeros"):
        check(thing)
    with torch.no_grad():
        thing.table.normal_()
    assert check(thing).status == 0


def test_what_is_asked_for_no_size_is_a_bias_where_that_is_said():
    with pytest.raises(CannotCheckError, match="of a window"):
        check(Map, call="subject()")
    assert check(Map, kind="bias", call="subject()").kind == "bias"
