"""A short hunt, and the proof that a hunt finds what was wrong once, when it is put back."""

import pytest
import torch
from hypothesis import Phase
from tests.fuzz.hunt import HUNTS, hunt

from posenc import positions
from posenc.backends import arguments, choice, explicit, neighbors, specification
from posenc.backends.strided import autograd, flash
from posenc.backends.strided import backend as strided
from posenc.encodings.scores import t5
from posenc.positions import over_padding
from posenc.transformer import encoder, placement


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("attention", 20),
        ("long", 5),
        ("told", 60),
        ("packing", 5),
        ("conversations", 2),
        ("places", 60),
        ("coordinates", 20),
    ],
)
def test_a_short_hunt_finds_nothing(name, cases):
    hunt([name], cases, start=0)


class Deaf:
    """An encoding that depends on content and is not told the scale."""

    def __init__(self, of):
        self.of = of

    def __getattr__(self, name):
        return getattr(self.of, name)

    def encode(self, scores, table, *, scale, **content):
        return self.of.encode(scores, table, **content)


def to_the_deaf(self, query, key, value, kept=choice.Explicit.__call__, **given):
    object.__setattr__(self, "encodings", tuple((Deaf(e), t) for e, t in self.encodings))
    return kept(self, query, key, value, **given)


def merged_in_16_bits(out, *rest, kept=autograd.merged_results, **named):
    return kept(out.bfloat16().to(out.dtype), *rest, **named)


def written_into_padding(x, tables, padding_mask):
    x = x if padding_mask is None else x.where(padding_mask.unsqueeze(-1), 0.0)
    for encoding, table in tables:
        x = encoding.encode(x, table)
    return x


FAULTS = {
    "documents of the last keys are taken for those of the queries, whoever they are":
        ("attention", arguments, "_queries_are_last", lambda q_len, k_len, *_: q_len <= k_len),
    "what stands in padding stays there and is only hidden":
        ("attention", arguments.Arguments, "without_padding",
         lambda self: (self.query, self.key, self.value)),
    "a batch of padding gives zeros that nothing leads to":
        ("attention", strided, "nothing_of", lambda *content: torch.zeros(())),
    "a mask of more rows than the batch makes a batch of its own":
        ("attention", arguments, "checked_attn_mask", lambda mask, query, key: mask),
    "a distance that leaves int64 comes out at its other end":
        ("attention", specification, "pair_distances",
         lambda q, k: q.unsqueeze(-1) - k.unsqueeze(-2)),
    "order goes by the place in the row where positions are given":
        ("attention", specification.AttentionSpecification, "order_is_that_of_rows",
         property(lambda self: True)),
    "encodings that depend on content are not told the scale":
        ("attention", choice.Explicit, "__call__", to_the_deaf),
    "products of queries and keys are formed in 16 bits inside autocast":
        ("long", (flash, explicit), "product", torch.matmul),
    "a bias learns from a result that was rounded as its content is":
        ("long", autograd, "merged_results", merged_in_16_bits),
    "rows of a table in 16 bits sum the gradients of all their pairs in these":
        ("long", t5, "working_dtype", lambda dtype: dtype),
    "padding at the beginning of a later chunk stands where the next token will":
        ("conversations", placement, "_over_padding",
         lambda positions, real, _: over_padding(positions, real)),
    "positions behind a start at the end of int64 come out at 0":
        ("places", positions, "left_padded", lambda mask, *, start=0:
         ((mask != 0).cumsum(-1) + (start - 1)).clamp(min=0)),
    "what a mask alone says of padding is read and counted as any other token":
        ("told", neighbors, "check_mask_tells_nothing", lambda *given: None),
    "what an encoding of tokens makes of padding stays there for the next":
        ("images", encoder, "_encoded", written_into_padding),
}  # fmt: skip


@pytest.mark.slow("planted faults, each hunted until it is found")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_put_back_is_found(fault, monkeypatch):
    name, places, attribute, other = FAULTS[fault]
    for place in places if isinstance(places, tuple) else (places,):
        monkeypatch.setattr(place, attribute, other)
    monkeypatch.setattr("tests.fuzz.hunt.PHASES", [Phase.generate])
    with pytest.raises(BaseException) as found:  # noqa: PT011 (whatever shows it)
        HUNTS[name][0](1500, 0)
    assert not isinstance(found.value, KeyboardInterrupt)
