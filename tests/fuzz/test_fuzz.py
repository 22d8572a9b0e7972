"""A short hunt, and the proof that a hunt finds what was wrong once, when it is put back."""

import pytest
import torch
from hypothesis import Phase
from tests.fuzz.hunt import HUNTS, hunt

from posenc import positions
from posenc.backends import arguments, choice, explicit, neighbors, specification
from posenc.backends.strided import autograd, flash
from posenc.backends.strided import backend as strided
from posenc.positions import over_padding
from posenc.transformer import Encoder, placement


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


def last_documents_for_queries(monkeypatch):
    """Documents of the last keys are taken for those of the queries, whoever they are."""
    monkeypatch.setattr(arguments, "_queries_are_last", lambda q_len, k_len, *_: q_len <= k_len)


def nan_left_in_padding(monkeypatch):
    """What stands in padding stays there and is only hidden."""
    monkeypatch.setattr(
        arguments.Arguments, "without_padding", lambda self: (self.query, self.key, self.value)
    )


def no_gradient_of_nothing(monkeypatch):
    """A batch of padding gives zeros that nothing leads to."""
    monkeypatch.setattr(strided, "nothing_of", lambda *content: torch.zeros(()))


def masks_that_enlarge(monkeypatch):
    """A mask of more rows than the batch makes a batch of its own."""
    monkeypatch.setattr(arguments, "checked_attn_mask", lambda mask, query, key: mask)


def distances_that_wrap(monkeypatch):
    """A distance that leaves int64 comes out at its other end."""
    monkeypatch.setattr(
        specification, "pair_distances", lambda q, k: q.unsqueeze(-1) - k.unsqueeze(-2)
    )


def padding_that_waits(monkeypatch):
    """Padding at the beginning of a later chunk stands where the next token will."""
    monkeypatch.setattr(
        placement, "_over_padding", lambda positions, real, _: over_padding(positions, real)
    )


def order_by_rows(monkeypatch):
    """Order goes by the place in the row where positions are given."""
    monkeypatch.setattr(
        specification.AttentionSpecification, "order_is_that_of_rows", property(lambda self: True)
    )


def a_scale_unheard(monkeypatch):
    """Encodings that depend on content are not told the scale."""
    kept = choice.Explicit.__call__

    def unheard(self, query, key, value, *, scale, dropout_p):
        class Deaf:
            def __init__(self, of):
                self.of, self.changes_output = of, of.changes_output

            def encode(self, scores, table, *, scale, **content):
                return self.of.encode(scores, table, **content)

            def encode_output(self, *given):
                return self.of.encode_output(*given)

        object.__setattr__(self, "encodings", tuple((Deaf(e), t) for e, t in self.encodings))
        return kept(self, query, key, value, scale=scale, dropout_p=dropout_p)

    monkeypatch.setattr(choice.Explicit, "__call__", unheard)


def scores_that_autocast_rounds(monkeypatch):
    """Products of queries and keys are formed in 16 bits inside autocast, and anew in float32."""
    for module in (flash, explicit):
        monkeypatch.setattr(module, "product", torch.matmul)


def what_learns_from_16_bits(monkeypatch):
    """A bias learns from a result that was rounded as its content is."""
    kept = autograd.merged_results

    def rounded(out, *rest, **named):
        return kept(out.bfloat16().to(out.dtype), *rest, **named)

    monkeypatch.setattr(autograd, "merged_results", rounded)


def starts_that_run_over(monkeypatch):
    """Positions behind a start at the end of int64 come out at 0."""
    monkeypatch.setattr(
        positions,
        "left_padded",
        lambda mask, *, start=0: ((mask != 0).cumsum(-1) + (start - 1)).clamp(min=0),
    )


def sizes_that_are_cut(monkeypatch):
    """torch takes the whole part of a start."""
    monkeypatch.setattr(
        positions,
        "consecutive",
        lambda length, *, start=0: torch.arange(start, start + length, dtype=torch.int64),
    )


def sums_of_16_bits(monkeypatch):
    """Rows of a table in 16 bits sum the gradients of all their pairs in these."""
    monkeypatch.setattr("posenc.encodings.scores.t5.working_dtype", lambda dtype: dtype)


def masks_that_tell(monkeypatch):
    """What a mask alone says of padding and documents is read and counted as any other token."""
    monkeypatch.setattr(neighbors, "check_mask_tells_nothing", lambda *given: None)


def padding_that_is_written_into(monkeypatch):
    """What an encoding of tokens makes of padding stays there for the next, which reads it."""

    def encoded(self, x, tables, padding_mask):
        x = x if padding_mask is None else x.where(padding_mask.unsqueeze(-1), 0.0)
        for encoding, table in tables:
            x = encoding.encode(x, table)
        return x

    monkeypatch.setattr(Encoder, "_encoded", encoded)


FAULTS = {
    last_documents_for_queries: "attention",
    nan_left_in_padding: "attention",
    no_gradient_of_nothing: "attention",
    masks_that_enlarge: "attention",
    distances_that_wrap: "attention",
    order_by_rows: "attention",
    a_scale_unheard: "attention",
    scores_that_autocast_rounds: "long",
    what_learns_from_16_bits: "long",
    sums_of_16_bits: "long",
    padding_that_waits: "conversations",
    starts_that_run_over: "places",
    sizes_that_are_cut: "places",
    masks_that_tell: "told",
    padding_that_is_written_into: "images",
}


@pytest.mark.slow("planted faults, each hunted until it is found")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_that_is_put_back_is_found(fault, monkeypatch):
    fault(monkeypatch)
    monkeypatch.setattr("tests.fuzz.hunt.PHASES", [Phase.generate])
    with pytest.raises(BaseException) as found:  # noqa: PT011 (whatever shows it)
        HUNTS[FAULTS[fault]].run(1500, 0)
    assert not isinstance(found.value, KeyboardInterrupt)
