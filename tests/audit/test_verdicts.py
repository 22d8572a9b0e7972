"""Verdicts on single subjects: faults, notes and what each is said to be.

The zoo has the public styles; here stand packages, and what one style hides from another.
"""

from functools import partial

import pytest
import torch
from positional_encodings.torch_encodings import (
    PositionalEncoding1D,
    PositionalEncoding2D,
    PositionalEncodingPermute2D,
)
from rotary_embedding_torch import RotaryEmbedding
from tests.audit import specimens as its
from tests.audit.zoo.right.added import FourierFeatures, RowsAndColumns, Steps, Tutorial
from tests.audit.zoo.right.bias import T5, Kerple, Swin, T5Decoder
from tests.audit.zoo.right.grids import RoPE2D
from tests.audit.zoo.right.rotary import LeftToTheScale, Llama3
from tests.audit.zoo.wrong import bias as wrong_bias
from tests.audit.zoo.wrong import places

from posenc.audit import check

pytestmark = pytest.mark.filterwarnings("ignore")


OF_YARN = {
    "model_type": "llama", "hidden_size": 128, "num_attention_heads": 2,
    "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
        "original_max_position_embeddings": 2048,
    },
}  # fmt: skip
FALLS, SAID = (wrong_bias.Alibi, "ALiBi for 8 heads", None), "Sinusoidal(32)"
SLOW = pytest.mark.slow("more of its kind", spares=6)


def case(thing, *faults, says="", notes=None, marks=(), **options):
    """A subject, its faults, its notes where these are asked, and what it is said to be."""
    told = getattr(thing, "__name__", type(thing).__name__)
    return pytest.param(thing, set(faults), notes, says, options, marks=marks, id=told)


CASES = [
    # public packages, with their known faults
    case(PositionalEncoding1D, "first-dtype-cached", arguments={"channels": 64}),
    case(PositionalEncoding2D, "first-dtype-cached", arguments={"channels": 32},
         says="a grid encoding: height in the first half"),
    case(PositionalEncodingPermute2D(64), "first-dtype-cached"),
    case(partial(RotaryEmbedding, 64), "positions-in-16-bits",
         says="interleaved pairing, base 10,000"),
    case(partial(RotaryEmbedding, 32, use_xpos=True), "decoding-differs-from-prefill",
         "positions-in-16-bits", length=512),
    # what each is said to be
    case(Llama3, says="Llama 3 scaling by 8 from 8,192: equal to posenc.recipes.llama3(64, fac"),
    case(RoPE2D, says="an axial rotary encoding: rows turn 32 of 64 channels"),
    case(T5Decoder, says="to distance 599", notes=set()),
    case(T5, notes=set()),
    case(its.WithoutSides, says=", for keys up to the query's; those after it read other rows",
         notes={"buckets-by-side"}),
    case(its.Unsaid, notes={"buckets-by-side"}),
    case(its.of_positions_and_offset, says=SAID, dim=32),
    case(its.SaysThatItDecodes, notes={"buckets-by-side"}),
    case(its.BothSidesHidden, notes={"buckets-by-side"}),
    case(its.later_keys_by_place, says="those after it receive another bias", notes=set()),
    case(its.alibi_of_a_mask),
    case(its.swin(), "bias-without-cache-offset", says="one number for each distance up to 48:"),
    *(case(its.swin(stride), notes={"values-shared"} if stride == 12 else set(),
           only=["tells-distances-apart", "knows-distance-alone"]) for stride in (12, 13)),
    case(Kerple, notes={"unknown-function"}, marks=SLOW),
    case(its.sines_of_shares, notes={"unknown-function"}, marks=SLOW),
    case(Steps, notes={"unknown-function"}, marks=SLOW),
    case(FourierFeatures, notes={"unknown-function"}, marks=SLOW),
    case(Swin, notes=set(), marks=SLOW),
    case(RowsAndColumns, marks=SLOW),
    *(case(partial(its.heads_last, heads=n), says=f"ALiBi for {n} heads: equal to", marks=SLOW)
      for n in (8, 12, 24)),
    # sums
    case(Tutorial, notes={"takes-sequence-first"}),
    case(Tutorial, seq_first=True),
    case(Tutorial, "batch-axis-encoded", layout="bsd"),
    case(its.ShareNamedP),
    case(its.IdsOrEmbeddings),
    case(its.WithAnUnusedTable, "parameter-without-gradient"),
    case(its.Roberta),
    case(its.OfRealTokens),
    case(its.OfAllTokens, "padding-shifts-positions"),
    case(its.far_sines, "far-positions-otherwise", dim=32),
    case(its.Places, says="a learned table, at least 64 rows of 64"),
    case(its.OfPatches, says="a learned table, at least 64 rows of 64"),
    # rotations
    case(its.Thousand, notes={"perhaps-wrong-exponent"}),
    case(LeftToTheScale, notes={"factor-left-out"}),
    case(its.HalvesTheRest, "rest-changed", "cast-breaks-it"),
    case(its.HalvesTheRest, "rest-changed", "cast-breaks-it", arguments={"head_dim": 64}),
    *(case(its.Moved(moved), name, says=f"to position {known:,}") for moved, name, known in (
        (lambda p: p + (p >= 6000), "far-positions-otherwise", 5_999),
        (lambda p: torch.where(p >= 8190, 2 * p, p), "far-positions-otherwise", 8_189),
        (lambda p: p % 5000, "wrapped", 4_999),
        (lambda p: p - (p >= 4096).long(), "positions-shared", 4_095),
        (lambda p: torch.where(p > 3000, p // 2, p), "positions-shared", 3_000),
    )),
    case(its.Moved(lambda p: p.half().double()), "positions-in-16-bits"),
    case(its.Moved(lambda p: p.bfloat16().double()), "positions-in-16-bits"),
    case(its.Moved(lambda p: p * (1 + 1.5e-6)), "precision-lost", length=65_536),
    # met in the field, each called wrong
    case(its.SinesForCosines, "turned-backwards"),
    case(its.CosinesFirst, "unknown-frequencies"),
    case(its.WithBorders, "unknown-frequencies"),
    case(its.PositionsInABuffer, "cast-breaks-it"),
    case(its.FirstForAll, "first-row-for-all"),
    case(LeftToTheScale, "unlike-its-configuration", notes={"factor-left-out"}, config=OF_YARN),
    # a written call is asked as one that was found
    *(case(thing, *faults, call=call, says="" if faults else says, dim=dim, marks=SLOW)
      for (thing, says, dim), call, *faults in (
        ((places.Said, SAID, 32), "subject(x, p)"),
        ((places.Said, SAID, 32), "x + subject.table(p).to(x.dtype)"),
        ((places.Said, SAID, 32), "subject.table(torch.arange(length)).float()"),
        ((places.Started, SAID, 32), "subject(x, offset)"),
        ((places.StartEnds, SAID, 32), "subject(x, offset)", "positions-misread"),
        ((places.Sorted, SAID, 32), "subject(x, p)", "positions-misread"),
        (FALLS, "subject(q_len, k_len)"),
        (FALLS, "subject(k_len, k_len)"),
        (FALLS, "scores + subject(*scores.shape[2:])"),
        (FALLS, "2 * scores + subject(*scores.shape[2:])", "scores-changed"),
        (FALLS, "-subject(q_len, k_len)", "wrong-sign"),
        (FALLS, "subject(k_len, k_len)[:, :q_len]", "bias-without-cache-offset"),
        ((wrong_bias.OfScores, "", None), "subject(1.5 * scores)", "scores-changed"),
    )),
]  # fmt: skip

LOSSY = {"cast-breaks-it", "positions-in-16-bits", "precision-lost"}
WORDS = {  # what the fault says besides
    its.SinesForCosines: "sines and cosines are exchanged",
    its.CosinesFirst: "sines and cosines are exchanged",
    its.WithBorders: "base 10,000 with fast pairs divided by 4",
    its.PositionsInABuffer: "neighbors receive the same",
    its.FirstForAll: "all stand where the first does",
}


@pytest.mark.parametrize(("thing", "faults", "notes", "says", "options"), CASES)
def test_verdict(thing, faults, notes, says, options):
    report = check(thing, **options)
    assert {fault.name for fault in report.faults} == faults, str(report)
    assert notes is None or {note.name for note in report.notes} >= notes
    assert notes or notes is None or not report.notes
    assert says in report.identity
    lossy = {fault.name for fault in report.faults if fault.severity == "lossy"}
    assert lossy <= LOSSY
    assert report.status == (1 if faults - lossy else 0)
    assert WORDS.get(thing, "") in "".join(fault.said for fault in report.faults)


@pytest.mark.parametrize(("thing", "blamed"), [(its.Growing, False), (its.NarrowQueries, True)])
def test_queries_beside_keys_that_grow_are_held_to_their_own_size(thing, blamed):
    named = {fault.name for fault in check(thing).faults}
    assert ("positions-in-16-bits" in named) is blamed


@pytest.mark.parametrize(
    ("thing", "options"),
    [
        (its.WithAnUnusedTable, {}),
        (Tutorial, {"layout": "bsd"}),
        (LeftToTheScale, {"config": OF_YARN}),
        (places.StartEnds, {"call": "subject(x, offset)", "dim": 32}),
    ],
)
def test_a_reproduction_finds_the_fault_again(thing, options, capsys):
    (fault,) = check(thing, **options).faults
    exec(fault.reproduction, {"subject": thing})
    assert fault.said in capsys.readouterr().out


def test_the_number_shows_the_fault():
    (fault,) = check(Tutorial, layout="bsd").faults
    assert fault.number == pytest.approx(1.416, abs=0.01)  # sin 2, 1 − cos 2, …
    (fault,) = check(PositionalEncoding1D, arguments={"channels": 64}).faults
    assert 1e-3 < fault.number < 4e-3  # half a unit of bfloat16 below one
    (fault,) = check(its.far_sines, dim=32).faults
    assert 6000 <= fault.number < 6100
