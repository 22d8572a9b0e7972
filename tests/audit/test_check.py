"""What the checker finds in public packages, how it is told what to do, and what it says."""

import ast
import json
import math
import re
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.audit.zoo.right.added import (
    Annotated,
    FourierFeatures,
    RowsAndColumns,
    Steps,
    Tutorial,
)
from tests.audit.zoo.right.bias import T5, Swin, T5Decoder, of_square
from tests.audit.zoo.right.grids import Patches
from tests.audit.zoo.right.rotary import VLLM, CacheOfFourRows, LeftToTheScale, LlamaRotary
from tests.audit.zoo.wrong import places
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn

import posenc
from posenc import ALiBi, Learned, Rotary, Sinusoidal, T5Bias
from posenc.audit import CannotCheckError, check
from posenc.audit.check import FAULTS
from posenc.audit.formats import sarif

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def names(report) -> list[str]:
    return [fault.name for fault in report.faults]


# Public packages, with their known faults.


def test_positional_encodings_caches_by_shape_alone():
    from positional_encodings.torch_encodings import PositionalEncoding1D, PositionalEncoding2D

    report = check(PositionalEncoding1D, arguments={"channels": 64})
    assert names(report) == ["first-dtype-cached"]
    assert 1e-3 < report.faults[0].number < 4e-3  # half a unit of bfloat16 below one
    report = check(PositionalEncoding2D, arguments={"channels": 32})
    assert names(report) == ["first-dtype-cached"]
    assert "a grid encoding: height in the first half" in report.identity


def test_rotary_embedding_torch_loses_positions_in_bfloat16():
    from rotary_embedding_torch import RotaryEmbedding

    report = check(lambda: RotaryEmbedding(64))
    assert names(report) == ["positions-in-16-bits"]
    assert "interleaved pairing, base 10,000" in report.identity


def test_rotary_embedding_torch_decodes_xpos_otherwise_than_it_prefills():
    from rotary_embedding_torch import RotaryEmbedding

    report = check(lambda: RotaryEmbedding(32, use_xpos=True), length=512)
    assert names(report) == ["decoding-differs-from-prefill", "positions-in-16-bits"]
    assert "is-relative" in [verdict.question for verdict in report.passed]


@pytest.mark.slow("a model of transformers")
def test_llama_of_transformers_is_damaged_by_a_cast_and_precise_enough():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(hidden_size=256, num_attention_heads=4)
    report = check(lambda: LlamaRotaryEmbedding(config))
    assert names(report) == ["cast-breaks-it"]
    assert report.faults[0].number > 0.1
    assert "applied by apply_rotary_pos_emb beside it" in report.understood
    farther = check(lambda: LlamaRotaryEmbedding(config), length=10_000_000)
    assert "precision-lost" in names(farther)


def test_llama_3_is_told_in_one_line():
    from tests.audit.zoo.right.rotary import Llama3

    told = str(check(Llama3)).splitlines()[1]
    assert told.startswith(
        "  is a rotary encoding, half pairing, base 500,000, Llama 3 scaling by 8 from 8,192: "
        "equal to posenc.recipes.llama3(64, factor=8.0) within "
    )
    assert told.endswith(" to position 8,191")
    assert float(told.split()[-4]) < 1e-3  # what float32 loses by there


def test_dust3r_style_grids_are_told_by_axis():
    from tests.audit.zoo.right.grids import RoPE2D

    report = check(RoPE2D)
    assert report.identity.startswith("an axial rotary encoding: rows turn 32 of 64 channels")
    assert "; columns turn 32 of 64 channels, half pairing, base 100: equal to" in report.identity
    assert "both-axes-turn" in [verdict.question for verdict in report.passed]
    with pytest.raises(CannotCheckError):
        check(RoPE2D, kind="added")


SCALED = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip


def configurations():
    import transformers as t

    small = {"hidden_size": 128, "num_attention_heads": 2}
    yield t.LlamaConfig(**small, rope_parameters=SCALED), "Llama 3 scaling by 8 from 8,192", 0
    yield t.CohereConfig(**small, num_key_value_heads=2), "interleaved pairing, base 500,000", 0
    yield t.GPTNeoXConfig(**small), "half pairing, base 10,000", 0
    yield t.GptOssConfig(num_hidden_layers=1), "YaRN by 32 from 4,096, borders not rounded", 0
    yield t.Gemma3TextConfig(**small, num_hidden_layers=6), "base 1,000,000", 0
    yield t.T5Config(d_model=64), "T5's bias, 32 buckets for both directions", 0
    yield t.MptConfig(d_model=96, n_heads=12), "ALiBi for 12 heads", 0
    yield t.GPT2Config(n_embd=64, n_head=4), "a learned table, at least 1,024 rows", 0
    dynamic = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    yield t.LlamaConfig(**small, rope_parameters=dynamic), "", 1


@pytest.mark.slow("a model of each", spares=4)
@pytest.mark.parametrize("index", range(9))
def test_configurations_of_transformers(index):
    config, says, status = list(configurations())[index]
    report = check(config)
    assert says in report.identity
    assert report.status == status, str(report)
    assert ("depends-on-length" in names(report)) == (status == 1)


def test_a_whole_model_is_asked_by_its_parts():
    from transformers import LlamaConfig, LlamaModel

    sizes = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1}
    model = LlamaModel(LlamaConfig(**sizes, vocab_size=16, intermediate_size=16))
    before = {name: tensor.clone() for name, tensor in model.named_buffers()}
    report = check(model)
    assert "LlamaRotaryEmbedding at rotary_emb" in report.identity
    assert all(torch.equal(before[name], tensor) for name, tensor in model.named_buffers())


@pytest.mark.slow("models of several parts")
def test_parts_of_other_configurations_are_asked_each():
    """They are as wide as each other, and have no numbers until they are built."""
    from transformers import BltConfig

    sizes = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1}
    bases = {"encoder": 5e5, "global": 5e5, "decoder": 1234.0, "patcher": 5e5}
    parts = {
        f"{part}_config": {**sizes, "rope_parameters": {"rope_type": "default", "rope_theta": base}}
        for part, base in bases.items()
    }
    report = check(BltConfig(vocab_size=16, **parts))
    assert "base 500,000" in report.identity
    assert re.search(r"local_decoder\S+ \S*.*base 1,234", report.identity), report.identity


@pytest.mark.slow("a long bias")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_alibi_of_bloom_is_coarse_in_bfloat16(dtype):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    def bias(length):
        return build_alibi_tensor(torch.ones(1, length), 8, dtype).reshape(8, 1, length)

    report = check(bias)
    if dtype == torch.float32:
        assert names(report) == []
        assert [note.name for note in report.notes] == ["key-only"]
    else:
        assert names(report) == ["bias-in-16-bits"]
        assert report.faults[0].number > 4
        assert "769 different values" in str(report)


class OfSquareLength(nn.Module):
    """Positions in bfloat16, and a table of 64² of them: it is none of an image."""

    most = 0

    def __init__(self):
        super().__init__()
        rates = (10_000.0 ** (-torch.arange(0, 64, 2) / 64)).bfloat16()
        angles = torch.outer(torch.arange(4096, dtype=torch.bfloat16), rates).float()
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def forward(self, q, k, start_pos=0):
        """q: [batch, seq, heads, head_dim]"""
        type(self).most = max(self.most, q.numel())
        turns = self.turns[start_pos : start_pos + q.shape[1], None]

        def turned(x):
            pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)

        return turned(q), turned(k)


def test_a_long_table_is_not_looked_at_as_an_image_at_length():
    found = names(check(OfSquareLength))
    assert {"positions-in-16-bits", "unknown-frequencies"} <= set(found)
    assert OfSquareLength.most < 2**24, "64 channels in rows of 64² tokens are 2^26 numbers"


@pytest.mark.parametrize(("stride", "noted"), [(13, []), (12, ["values-shared"])])
def test_ways_to_lie_that_share_a_learned_number_are_noted(stride, noted):
    """12 (2w − 2) rows for each difference of rows: (0, 6) and (1, −6) are row 6."""
    swin = Swin()
    points = of_square(7)
    apart = points[:, None] - points
    swin.relative_position_index = apart[..., 0] * stride + apart[..., 1] + 84
    report = check(swin, only=["tells-distances-apart", "knows-distance-alone"])
    assert not report.faults
    assert [note.name for note in report.notes] == noted


def test_a_table_of_a_window_that_is_read_by_distance_alone_is_noted():
    """w rows for each difference of rows instead of 2w − 1: what is left is the row's distance."""
    swin = Swin()
    apart = of_square(7)[:, None] - of_square(7) + 6
    swin.relative_position_index = apart[..., 0] * 7 + apart[..., 1]
    report = check(swin)
    assert [note.name for note in report.notes] == ["values-shared"]
    assert "169 rows, one for each step in a square of 7 × 7 tokens" in report.notes[0].said
    assert "one number for each distance up to 48:" in report.identity


class WithoutSides(T5Decoder):
    """Keys after the query read the rows of those before it."""

    def bucket(self, relative_position):
        return super().bucket(-relative_position.abs())


def test_buckets_without_sides_are_those_of_a_decoder_up_to_the_query_alone():
    assert check(T5Decoder).identity.endswith("to distance 599")
    told = check(WithoutSides).identity
    assert told.endswith(", for keys up to the query's; those after it read other rows")


class Unsaid(T5):
    """Buckets for the past, of which it says nothing."""

    def __init__(self):
        super().__init__(bidirectional=False)
        del self.bidirectional

    def bucket(self, relative_position):
        return T5Decoder().bucket(relative_position)


class SaysThatItDecodes(T5):
    """Buckets for both directions in a decoder."""

    def __init__(self):
        super().__init__()
        self.is_decoder = True


class BothSidesHidden(T5):
    """The same with a causal mask in it."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        made = super().forward(query_length, key_length, past_seen_tokens)
        queries = torch.arange(query_length)[:, None] + past_seen_tokens
        return made.masked_fill(torch.arange(key_length) > queries, -torch.inf)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (T5, ""),
        (T5Decoder, ""),
        (WithoutSides, "keys after the query read the rows of keys as far before it"),
        (Unsaid, "all keys after the query read row 0, as its own key does"),
        (SaysThatItDecodes, "for both directions, but it says of itself that it decodes"),
        (BothSidesHidden, "for both directions, but it hides all later keys"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_sides_that_buckets_may_not_be_meant_for_are_noted(thing, said):
    report = check(thing)
    assert report.status == 0
    assert [note.name for note in report.notes] == ["buckets-by-side"] * bool(said)
    assert all(said in note.said for note in report.notes)


def later_keys_by_place(q_len, k_len):
    """ALiBi, with what shifted rows leave behind the query."""
    queries, keys = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
    line = -(queries - keys) * 2.0 ** -torch.arange(1, 9)[:, None, None]
    return line.where(keys <= queries, (3 * queries + keys) % 5 + 0.0)


def test_later_keys_that_go_by_place_are_noted_where_a_causal_mask_may_hide_them():
    report = check(later_keys_by_place)
    assert report.status == 0
    (note,) = report.notes
    assert note.name == "depends-on-absolute-positions"
    assert "right where a causal mask hides these, and nowhere else" in note.said


class Kerple(nn.Module):
    """KERPLE's logarithm: two learned numbers a head, and a formula."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.rand(8, 1, 1) + 0.1) for _ in range(2))

    def forward(self, q_len, k_len):
        away = (torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)).abs()
        return -self.a * torch.log(1 + self.b * away)


def sines_of_shares(x):
    """DETR's: sines of what share of the height and of the width lies before.

    x: [batch, dim, height, width]
    """
    _, dim, height, width = x.shape
    rates = 10_000.0 ** -(torch.arange(0, dim // 2, 2) / (dim // 2))
    shares = [torch.arange(1, n + 1) / n * 2 * math.pi for n in (height, width)]
    down, along = (
        torch.cat(((s[:, None] * rates).sin(), (s[:, None] * rates).cos()), 1) for s in shares
    )
    table = torch.cat((down[:, None].expand(-1, width, -1), along.expand(height, -1, -1)), -1)
    return x + table.permute(2, 0, 1)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    ("thing", "noted"),
    [
        (Kerple, True),
        (sines_of_shares, True),
        (Steps, True),
        (FourierFeatures, True),
        (Swin, False),
        (RowsAndColumns, False),
    ],
    ids=["kerple", "detr", "dit", "fourier", "swin", "rows and columns"],
)
def test_a_formula_that_is_not_known_is_noted_and_a_learned_table_is_not(thing, noted):
    report = check(thing)
    assert report.status == 0
    assert ("unknown-function" in [note.name for note in report.notes]) is noted


# Numbers by hand.


def test_the_number_shows_the_fault():
    report = check(Tutorial, layout="bsd")
    assert names(report) == ["batch-axis-encoded"]
    assert report.faults[0].number == pytest.approx(1.416, abs=0.01)  # sin 2, 1 − cos 2, …
    assert check(Tutorial, seq_first=True).ok
    note = check(Tutorial).notes[0]
    assert note.name == "takes-sequence-first"


def test_errors_follow_the_position():
    report = check(Rotary_in_float32)
    assert list(report.errors) == sorted(report.errors)
    assert report.errors[63] < 1e-5 < report.errors[8191]


class Rotary_in_float32(nn.Module):
    """The common formula."""

    def forward(self, q, k, positions):
        return Rotary(64, arithmetic="float32")(q, k, positions)


# What is ours.


@pytest.mark.parametrize(
    ("encoding", "arguments"),
    [
        (Sinusoidal, {"dim": 16, "convention": "tensor2tensor"}),
        (Learned, {"dim": 16, "max_len": 64}),
        (Rotary, {"frequencies": 16}),
        (ALiBi, {"heads": 4}),
        (T5Bias, {"heads": 4}),
    ],
    ids=str,
)
def test_none_in_ours(encoding, arguments):
    report = check(encoding, arguments=arguments)
    assert report.ok, str(report)
    assert len(report.passed) > 12


def test_a_battery_that_fails_is_reported():
    class Wrong(posenc.TokenEncoding):
        dim, batch_first, keeps_norm, keeps_shift = 8, True, False, False

        def table(self, positions, *, dtype=None):
            return torch.zeros(*positions.shape, 8, dtype=dtype or torch.float32)

        def encode(self, x, table):
            return x + table

    assert "encodes-the-sequence" in names(check(Wrong))


# How it is told what to do.


def test_a_call_may_be_written_out():
    class Strange(nn.Module):
        def forward(self, which, one, other):
            return Turn().forward(one, other, which[:, 1:])

    assert (
        "half pairing"
        in check(Strange, call="subject(torch.cat((p[:, :1], p), 1), q, k)", dim=32).identity
    )
    with pytest.raises(CannotCheckError, match=r"gives list, which is none of the known results"):
        check(Strange, call="[subject, q]", dim=32)
    with pytest.raises(CannotCheckError, match="is no expression"):
        check(Strange, call="subject(", dim=32)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    ("kind", "call", "found"),
    [
        (places.Said, "subject(x, p)", set()),
        (places.Said, "x + subject.table(p).to(x.dtype)", set()),
        (places.Said, "subject.table(torch.arange(length)).float()", set()),
        (places.Started, "subject(x, offset)", set()),
        (places.StartEnds, "subject(x, offset)", {"positions-misread"}),
        (places.Sorted, "subject(x, p)", {"positions-misread"}),
        (places.Falls, "subject(q_len, k_len)", set()),
        (places.Falls, "subject(k_len, k_len)", set()),
        (places.Falls, "scores + subject(*scores.shape[2:])", set()),
        (places.Falls, "2 * scores + subject(*scores.shape[2:])", {"scores-changed"}),
        (places.Falls, "-subject(q_len, k_len)", {"wrong-sign"}),
        (places.Falls, "subject(k_len, k_len)[:, :q_len]", {"bias-without-cache-offset"}),
        (places.HalfInABatch, "subject(scores)", {"scores-changed"}),
    ],
)
def test_a_written_call_is_asked_as_one_that_was_found(kind, call, found):
    report = check(kind, call=call, dim=None if issubclass(kind, places.Falls) else 32)
    assert set(names(report)) == found, str(report)
    if not found:
        expected = "ALiBi for 8 heads" if issubclass(kind, places.Falls) else "Sinusoidal(32)"
        assert expected in report.identity


def test_what_a_written_call_gives_is_watched():
    class Writing(nn.Module):
        def forward(self, x, start):
            rows = Turn().forward(x, x, start + torch.arange(x.shape[-2])[None])[0]
            return x.copy_(rows)

    assert "input-written" in names(check(Writing, call="subject(q, int(offset))", dim=32))


def test_missing_arguments_are_guessed_in_the_open():
    class Table(Annotated):
        def __init__(self, d_model, max_len):
            super().__init__(d_model, max_len=max_len)

    report = check(Table)
    assert "built with d_model=64, max_len=512, by the names of its arguments" in report.understood


def test_only_and_ignore():
    whole, some = check(VLLM), check(VLLM, only=["is-relative", "is-precise"])
    assert [v.question for v in some.verdicts] == ["is-relative", "is-precise"]
    assert len(whole.verdicts) == 21
    assert check(LlamaRotary, strict=True).status == 1
    assert check(LlamaRotary, strict=True, ignore=["cast-breaks-it"]).status == 0


def test_the_page_has_the_names_of_all_faults_and_the_code_can_name_each():
    page = (ROOT / "docs/checking.md").read_text()
    listed = page.partition("## What is found")[2].partition("\n## ")[0]
    names = set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)*)`", listed))
    assert names == FAULTS
    questions = (ROOT / "src/posenc/audit/questions").rglob("*.py")
    code = [path.read_text() for path in questions if path.stem != "remedies"]
    words = {
        node.value
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
    }
    assert names - words == set()


@pytest.mark.slow("a model of transformers")
def test_a_configuration_beside_it():
    config = {"model_type": "llama", "head_dim": 32, "rope_theta": 1e4, "hidden_size": 64,
              "num_attention_heads": 2}  # fmt: skip
    assert "unlike-its-configuration" not in names(check(Turn, config=config))
    other = check(Turn, config={**config, "rope_theta": 5e5})
    assert "unlike-its-configuration" in names(other)
    assert "it has base 10,000" in str(other)
    assert "the configuration means base 500,000" in str(other)
    assert "pairing-of-the-other-convention" in names(
        check(Turn, config={**config, "model_type": "cohere"})
    )


# What it says.


def notes(report):
    return {fault.name for fault in report.found if fault.severity == "note"}


def test_what_may_be_meant_is_noted_alone():
    """1,000 is a base in use, and what i for 2i makes of 1,000,000; DeepSeek scales its scores."""

    class Thousand(Turn):
        base = 1000.0

    for thing, note in ((Thousand, "perhaps-wrong-exponent"), (LeftToTheScale, "factor-left-out")):
        report = check(thing)
        assert note in notes(report)
        assert not report.faults


def test_queries_beside_keys_that_grow_are_held_to_their_own_size():
    """xPos' keys grow to 10⁸, in which a query of another position would be lost."""

    class Growing(Turn):
        def turn(self, x, positions, sign=1):
            cos, sin = self.waveform(positions)
            size = 1.02 ** (sign * positions.double()[:, None, :, None] / 8)
            return ((x * cos + torch.cat((-x[..., 16:], x[..., :16]), -1) * sin) * size).to(x.dtype)

        def keys(self, k, positions):
            return self.turn(k, positions, -1)

    class NarrowQueries(Growing):
        def forward(self, q, k, positions):
            return self.turn(q, positions.to(q.dtype)), self.keys(k, positions)

    assert "positions-in-16-bits" not in names(check(Growing))
    assert "positions-in-16-bits" in names(check(NarrowQueries))


def test_one_bias_for_rows_of_any_padding_is_not_blamed():
    def alibi(attention_mask, num_heads):
        index = torch.arange(attention_mask.shape[-1])
        slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
        return (slopes[:, None, None] * (index[None] - index[:, None]))[None]

    report = check(alibi)
    assert report.status == 0
    assert "rows-have-their-own-padding" in {verdict.question for verdict in report.not_asked}


def test_rows_that_begin_behind_that_of_padding_are_not_blamed():
    """RoBERTa's positions are rows of its table, of which the first of a text is the third."""

    class Roberta(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(512, 32)

        def forward(self, inputs_embeds, position_ids=None, past_key_values_length=0):
            if position_ids is None:
                first = 2 + past_key_values_length
                position_ids = torch.arange(first, first + inputs_embeds.shape[1])
            return inputs_embeds + self.table(position_ids)

    assert "positions-misread" not in names(check(Roberta))


class IdsOrEmbeddings(nn.Module):
    """As models of transformers: one of the two."""

    def __init__(self, hidden=32):
        super().__init__()
        self.words, self.places = nn.Embedding(100, hidden), nn.Embedding(512, hidden)

    def forward(self, input_ids=None, position_ids=None, inputs_embeds=None):
        if inputs_embeds is None:
            inputs_embeds = self.words(input_ids)
        if position_ids is None:
            position_ids = torch.arange(inputs_embeds.shape[1])[None]
        return inputs_embeds + self.places(position_ids)


class WithAnUnusedTable(IdsOrEmbeddings):
    def __init__(self):
        super().__init__()
        self.unused = nn.Embedding(9, 32)


def test_what_ids_train_is_not_blamed_beside_embeddings():
    assert names(check(IdsOrEmbeddings)) == []
    (fault,) = check(WithAnUnusedTable).faults
    assert (fault.name, fault.said.partition(":")[0]) == (
        "parameter-without-gradient",
        "unused.weight",
    )
    shown = {"subject": WithAnUnusedTable()}
    exec(fault.reproduction.rpartition("\n")[0], shown)
    assert shown["subject"].unused.weight.grad is None


class OfRealTokens(nn.Module):
    """RoBERTa's and OPT's count of the tokens that a mask leaves, behind the row of padding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(512, 32)

    def forward(self, inputs_embeds, attention_mask=None, position_ids=None):
        if position_ids is None:
            real = torch.ones(inputs_embeds.shape[:2]) if attention_mask is None else attention_mask
            position_ids = self.places(real.long())
        return inputs_embeds + self.table(position_ids)

    def places(self, real):
        return real.cumsum(1) * real + 1


class OfAllTokens(OfRealTokens):
    def places(self, real):
        return torch.arange(2, real.shape[1] + 2).expand(real.shape)


def test_rows_that_begin_behind_that_of_padding_are_held_to_themselves_beside_a_mask():
    assert names(check(OfRealTokens)) == []
    report = check(OfAllTokens)
    assert names(report) == ["padding-shifts-positions"]
    assert report.faults[0].said.startswith("behind 3 padding tokens on the left")


def sines(n_position: int = 512, d_hid: int = 32):
    """A table by a product of matrices."""
    rates = 10000.0 ** (-torch.arange(0, d_hid, 2) / d_hid)
    angles = torch.arange(n_position).float()[:, None] @ rates[None]
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


class RowsOfSeveralTokens(nn.Module):
    """Rows of one token each are refused."""

    def forward(self, x, positions=None):
        positions = torch.arange(x.shape[1]) if positions is None else positions
        if len(x) > 1 and x.shape[1] == 1:
            raise ValueError("rows of several tokens, please")
        return x + sines()[positions]


def test_what_is_refused_is_not_told_as_asked():
    told = {v.question: (v.outcome, v.told) for v in check(RowsOfSeveralTokens).verdicts}
    outcome, words = told["reads-every-position"]
    assert outcome == "passed"
    assert "row by row" in words
    assert "of one token too" not in words
    two = next(v for v in check(CacheOfFourRows).verdicts if "own-positions" in v.question)
    assert two.outcome == "passed"


def test_a_table_that_a_function_gives_is_not_asked_within_autocast():
    report = check(sines)
    assert "autocast-breaks-it" not in names(report)
    assert "survives-autocast" in {verdict.question for verdict in report.not_asked}


def test_arguments_that_are_never_said_are_told():
    class Masked(VLLM):
        def forward(self, positions, query, key, attention_mask=None):
            return super().forward(positions, query, key)

    assert check(Masked).understood.endswith("; never said: attention_mask")
    assert "never said" not in check(VLLM).understood


def test_a_pass_is_a_measurement_and_an_omission_has_a_reason():
    report = check(VLLM)
    assert all(verdict.told for verdict in report.verdicts)
    assert report.conclusion.startswith("Nothing wrong was found (")
    asked = len(report.verdicts) - len(report.not_asked)
    assert f"{asked} of 21 questions asked" in report.conclusion


def test_what_learned_nothing_is_no_pass():
    report = check(VLLM, only=["survives-a-cast"])
    assert report.verdicts[0].outcome == "passed"
    assert (report.ok, report.status) == (False, 2)


def test_reports_for_machines():
    report = check(LlamaRotary)
    assert json.loads(json.dumps(report.as_dict()))["faults"][0]["severity"] == "lossy"
    assert sarif(report)["runs"][0]["results"][0]["level"] == "warning"


def test_what_cannot_be_checked_is_said():
    with pytest.raises(CannotCheckError, match=r"fits no form that is known here\. Accepted are"):
        check(math.pi)
    with pytest.raises(CannotCheckError, match=r"could not be built: TypeError.*Pass arguments"):
        check(Asking)
    with pytest.raises(CannotCheckError, match="it cannot be copied"):
        check(Uncopied())
    with pytest.raises(ValueError, match="'words' is no kind"):
        check(Tutorial, kind="words")
    with pytest.raises(ValueError, match="'clamp' is no fault"):
        check(Tutorial, ignore=["clamp"])


class Asking(nn.Module):
    def __init__(self, what):
        super().__init__()


class Uncopied(nn.Module):
    def __deepcopy__(self, memo):
        raise RuntimeError("not me")

    def forward(self, x):
        return x


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize("heads", [8, 12, 24])
def test_heads_on_the_last_axis_are_found_where_they_are_as_many_as_tokens(heads):
    def bias(q_len, k_len):
        return (
            ALiBi(heads)
            .profile(torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len))
            .permute(1, 2, 0)
        )

    report = check(bias)
    assert names(report) == []
    assert len(report.passed) == 10
    assert report.identity.startswith(f"ALiBi for {heads} heads: equal to")


# The plugin of pytest.


@pytest.mark.slow("a suite in processes of its own")
def test_the_plugin_checks_what_a_marked_test_returns(pytester_folder):
    ran = pytester_folder(
        """
        import pytest
        from tests.audit.zoo.right.added import Annotated
        from tests.audit.zoo.wrong.added import Clamped

        @pytest.mark.posenc(length=64)
        def test_right():
            return Annotated(32)

        @pytest.mark.posenc
        def test_wrong():
            return Clamped()

        @pytest.mark.posenc
        def test_nothing():
            pass

        def test_other():
            pass
        """
    )
    assert "2 failed, 2 passed" in ran
    assert "WRONG clamped" in ran
    assert "the test returned nothing" in ran


@pytest.fixture
def pytester_folder(tmp_path):
    """Runs a test file in a process of its own."""
    import subprocess
    import sys
    import textwrap
    from pathlib import Path

    def run(source: str) -> str:
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["posenc.audit.plugin"]\n')
        (tmp_path / "test_theirs.py").write_text(textwrap.dedent(source))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        root = str(Path(__file__).parents[2])
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
            cwd=tmp_path, env={"PYTHONPATH": root, "PATH": ""}, capture_output=True, text=True,
        )  # fmt: skip
        return ran.stdout

    return run


def test_a_function_keeps_what_it_encloses():
    table = Sinusoidal(16).table(torch.arange(64))
    held = {"calls": 0, "table": table}

    def add(x):
        held["calls"] += 1
        return x + held["table"][: x.shape[1]]

    assert isinstance(add, types.FunctionType)
    assert check(add).ok
    assert held["calls"] == 0


def test_arguments_of_what_is_built_are_refused():
    with pytest.raises(CannotCheckError, match="is built already"):
        check(nn.Embedding(32, 8), arguments={"embedding_dim": 64})


def moved_rotary(moved):
    """A rotary encoding in exact angles, of positions that are moved."""

    class Moved(nn.Module):
        def forward(self, q, k, position_ids):
            w = 1e4 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
            angle = moved(position_ids)[:, None, :, None] * w
            cos, sin = angle.cos().float(), angle.sin().float()

            def turn(x):
                a, b = x.chunk(2, -1)
                return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

            return turn(q), turn(k)

    return Moved


@pytest.mark.parametrize(
    ("moved", "name", "known"),
    [
        (lambda p: p + (p >= 6000), "far-positions-otherwise", 5_999),
        (lambda p: torch.where(p >= 8190, 2 * p, p), "far-positions-otherwise", 8_189),
        (lambda p: p % 5000, "wrapped", 4_999),
        (lambda p: p - (p >= 4096).long(), "positions-shared", 4_095),
        (lambda p: torch.where(p > 3000, p // 2, p), "positions-shared", 3_000),
    ],
)
def test_far_positions_that_are_turned_as_others_are_wrong_and_no_loss(moved, name, known):
    report = check(moved_rotary(moved), arguments={})
    assert [(fault.name, fault.severity) for fault in report.faults] == [(name, "wrong")]
    assert report.identity.endswith(f"to position {known:,}")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_positions_of_16_bits_are_a_loss(dtype):
    report = check(moved_rotary(lambda p: p.to(dtype).double()))
    assert [(f.name, f.severity) for f in report.faults] == [("positions-in-16-bits", "lossy")]


def test_angles_that_round_more_and_more_are_a_loss():
    report = check(moved_rotary(lambda p: p * (1 + 1.5e-6)), length=65_536)
    assert [(f.name, f.severity) for f in report.faults] == [("precision-lost", "lossy")]


def test_a_bias_of_no_known_formula_says_so():
    def kerple(q_len: int, k_len: int) -> torch.Tensor:
        q, k = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
        return -torch.stack([r * (1 + (q - k).abs()).log() for r in (1.0, 0.5)])

    report = check(kerple)
    assert (report.status, report.identity) == (0, "")
    assert "its numbers were compared with no formula" in str(report)


def test_far_positions_that_receive_sines_of_others_are_wrong_too():
    def add(x):
        p = torch.arange(x.shape[1])
        p = (p + (p >= 6000)).double()
        angle = p[:, None] * 1e4 ** (-torch.arange(0, 32, 2, dtype=torch.float64) / 32)
        return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1).float()

    report = check(add, dim=32)
    assert [(f.name, f.severity) for f in report.faults] == [("far-positions-otherwise", "wrong")]
    assert 6000 <= report.faults[0].number < 6100
    assert re.search(r"to position 5,\d{3}$", report.identity)


def test_ids_of_tokens_are_taken_for_no_positions():
    """What counts the ids that are no padding was blamed for the rows that it gave ids 0, 1, …"""

    class Counting(nn.Module):
        def __init__(self, dim=16, padding_idx=1):
            super().__init__()
            self.dim, self.padding_idx = dim, padding_idx

        def forward(self, input_ids):
            real = input_ids.ne(self.padding_idx)
            places = (real.cumsum(1) * real).double()
            angle = places[..., None] * 1e4 ** (-torch.arange(0, self.dim, 2) / self.dim)
            return torch.stack((angle.sin(), angle.cos()), -1).flatten(2).float()

    with pytest.raises(CannotCheckError, match="it fits no form that is known here"):
        check(Counting)


def test_names_may_come_from_a_generator():
    only, ignored = ("survives-a-cast",), ("cast-breaks-it",)
    listed = check(LlamaRotary, strict=True, only=only, ignore=ignored)
    drawn = check(LlamaRotary, strict=True, only=iter(only), ignore=iter(ignored))
    assert drawn.ignored == listed.ignored == {"cast-breaks-it"}
    assert [v.question for v in drawn.verdicts] == [v.question for v in listed.verdicts]
    assert len(drawn.verdicts) == 1


@pytest.mark.parametrize("cut", [False, True])
def test_a_grid_too_small_to_be_asked_is_refused(cut):
    """It ended in an error of the checker's own, or was blamed for what lines are blamed for."""
    with pytest.raises(CannotCheckError, match="fewer than 8 rows or columns"):
        check(lambda: Patches(side=7, cut=cut))


class Zeros(nn.Module):
    """A table that is not trained yet, added to what comes, or to scores."""

    def __init__(self, *shape):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(shape))


class ZerosAdded(Zeros):
    def forward(self, x):
        return x + self.table[: x.shape[1]]


class ZerosOfScores(Zeros):
    def forward(self, q_len, k_len):
        distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
        return self.table[distance.clamp(-20, 20) + 20].permute(2, 0, 1)


class WithTokens(Annotated):
    """Its own table of tokens, by any name of what it is given."""

    def __init__(self, d_model=32, vocab_size=700):
        super().__init__(d_model)
        self.tokens = nn.Embedding(vocab_size, d_model)

    def forward(self, src):
        return super().forward(self.tokens(src) * 32**0.5)


class WithTokensOfOneTable(WithTokens):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(100, 32)

    def forward(self, tokens):
        return self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))


class Normalized(Annotated):
    def __init__(self, d_model=32):
        super().__init__(d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.norm(super().forward(x))


class Rectified(Annotated):
    def forward(self, inputs_embeds):
        return super().forward(inputs_embeds).relu()


class DropsInEval(Annotated):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), p=0.1)


class DrawnAnew(nn.Module):
    def forward(self, x):
        return x + torch.randn(1, x.shape[1], 32)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (WithTokens, "equal numbers that it is given receive other rows at other places"),
        (WithTokensOfOneTable, "as ids of tokens do"),
        (Normalized, "as a norm behind the sum does. Check the part before"),
        (Rectified, "otherwise than by a sum"),
        (DropsInEval, "other numbers at each call"),
        (DrawnAnew, "other numbers at each call"),
    ],
)
def test_content_is_not_taken_for_positions_and_what_hides_the_sum_is_named(thing, said):
    """Modules that end in a norm, or begin with ids, were blamed for what they did to 0, 1, …"""
    with pytest.raises(CannotCheckError, match=f"no form that is known here: .*{re.escape(said)}"):
        check(thing)


class CountsIds(nn.Module):
    """fairseq's learned table, in a module of its own: positions are counted in ids of tokens."""

    def __init__(self, padding=1):
        super().__init__()
        self.padding, self.places = padding, nn.Embedding(100, 32, padding)

    def forward(self, input):
        real = input.ne(self.padding).long()
        return self.places(real.cumsum(1) * real + self.padding)


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("size", [0.5, 1.0])
def test_what_counts_positions_in_ids_is_told_how_it_is_asked(padding, size):
    """It was told to check the part that adds positions, which it is; padding of 0 was blamed.

    Small numbers for two rows of a batch were taken for cosines and their sines.
    """
    thing = CountsIds(padding)
    with torch.no_grad():
        thing.places.weight.mul_(size)
    with pytest.raises(CannotCheckError, match="counts positions in ids of tokens") as refusal:
        check(thing)
    call = re.findall('call="(.*)"', str(refusal.value))[0]
    report = check(thing, call=call)
    assert report.status == 0
    assert report.identity.startswith("a learned table")


@pytest.mark.parametrize("thing", [ZerosAdded(64, 32), ZerosOfScores(41, 4)])
def test_a_table_of_zeros_tells_nothing_and_is_not_blamed(thing):
    """As models begin; it was said that positions wrap, or that nothing is encoded."""
    with pytest.raises(CannotCheckError, match=r"of zeros\. Give it numbers"):
        check(thing)
    with torch.no_grad():
        thing.table.normal_()
    assert check(thing).status == 0


def test_chance_in_training_is_told_to_be_left_out():
    class Jitter(Tutorial):
        def forward(self, x):
            return super().forward(x) + (torch.rand(()) if self.training else 0.0)

    report = check(Jitter)
    asked = {verdict.question: verdict for verdict in report.verdicts}["same-however-it-is-given"]
    assert asked.told.endswith("not in training, where it differs by chance")
    assert report.status == 0


def test_maps_of_channels_first_are_read_as_such():
    from positional_encodings.torch_encodings import PositionalEncodingPermute2D

    report = check(PositionalEncodingPermute2D(64))  # which keeps what it made in one dtype
    assert {fault.name for fault in report.faults} == {"first-dtype-cached"}


def test_a_width_that_was_said_is_the_width_of_a_head():
    """What turns alone was taken for a head, so that nobody asked of the rest."""

    class HalvesTheRest(nn.Module):
        def __init__(self, head_dim=64, rotary_dim=32):
            super().__init__()
            rates = 10_000.0 ** -(torch.arange(0, rotary_dim, 2) / rotary_dim)
            self.rotary_dim = rotary_dim
            self.register_buffer("rates", rates, persistent=False)

        def forward(self, q, k, positions):
            return self.turned(q, positions), self.turned(k, positions)

        def turned(self, x, positions):
            part, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
            angles = positions[:, None, :, None].float() * self.rates.float()
            cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
            a, b = part.chunk(2, -1)
            made = part * cos + torch.cat((-b, a), -1) * sin
            return torch.cat((made, rest / 2), -1).to(x.dtype)

    for given in ({}, {"head_dim": 64}):
        assert "rest-changed" in {
            fault.name for fault in check(HalvesTheRest, arguments=given).faults
        }


def test_a_share_named_p_is_no_dropout():
    class Part(Tutorial):
        def __init__(self):
            super().__init__()
            self.p = 0.5

        def forward(self, x):
            return super().forward(x) if self.p == 0.5 else x

    assert not check(Part).faults


class AsWideAsLong(nn.Module):
    """Tokens and positions of width 64, up to 64 of them: what comes is a square."""

    def __init__(self, block_size=64, width=64):
        super().__init__()
        self.block_size = block_size
        self.tokens, self.places = nn.Embedding(100, width), nn.Embedding(block_size, width)

    def forward(self, ids):
        return self.tokens(ids) + self.places(torch.arange(ids.shape[-1]))


class WholeBlocks(AsWideAsLong):
    """Rows of that length alone."""

    def forward(self, batch):
        return self.tokens(batch) + self.places.weight


class OneRow(AsWideAsLong):
    """Ids without a batch: of one row of a batch, all stand at place 0."""

    def forward(self, ids):
        return self.tokens(ids) + self.places(torch.arange(len(ids)))


class Places(AsWideAsLong):
    """The table of positions alone, for so many."""

    def __init__(self):
        super().__init__()
        del self.tokens

    def forward(self, seq_len):
        return self.places(torch.arange(seq_len))


class OfPatches(nn.Module):
    """Patches of a window, as many as they are wide."""

    def __init__(self, window_size=(8, 8), width=64):
        super().__init__()
        self.window_size = window_size
        self.places = nn.Parameter(torch.randn(1, window_size[0] * window_size[1], width))

    def forward(self, x):
        return x + self.places


@pytest.mark.parametrize("kind", [AsWideAsLong, WholeBlocks, OneRow])
def test_tokens_as_wide_as_they_are_many_give_no_bias(kind):
    with pytest.raises(CannotCheckError, match="as ids of tokens do"):
        check(kind)


@pytest.mark.parametrize("kind", [Places, OfPatches])
def test_a_table_as_wide_as_it_is_long_is_no_bias(kind):
    report = check(kind)
    assert (report.kind, report.status) == ("added", 0)
    assert report.identity == "a learned table, at least 64 rows of 64"


class Map(nn.Module):
    """A map of 64 channels, which is asked for no size."""

    def __init__(self):
        super().__init__()
        self.map = nn.Parameter(torch.randn(1, 64, 16, 16))

    def forward(self):
        return self.map


def test_what_is_asked_for_no_size_is_a_bias_where_that_is_said():
    for given in ({}, {"kind": "bias"}):
        with pytest.raises(CannotCheckError, match='kind="bias" and call='):
            check(Map, **given)
    with pytest.raises(CannotCheckError, match="--as bias of one for all tokens of a window"):
        check(Map, call="subject()")
    assert check(Map, kind="bias", call="subject()").kind == "bias"


@pytest.mark.parametrize("name", ["tokens", "idx"])
def test_ids_of_tokens_are_no_positions(name):
    """Right code was blamed for what its ids do."""

    class Embedded(nn.Module):
        def __init__(self):
            super().__init__()
            self.padding_idx = 1
            self.table = nn.Embedding(40, 8)

    written = f"def forward(self, {name}): return self.table({name}.cumsum(-1) % 40)"
    found: dict = {}
    exec(written, found)
    kind = type("Embedded", (Embedded,), {"forward": found["forward"]})
    with suppress(CannotCheckError):
        assert check(kind).status == 2  # nothing was learned


@pytest.mark.parametrize("thing", [torch.zeros(3), np.zeros(3)], ids=["tensor", "array"])
def test_what_cannot_be_called_is_refused_in_words(thing):
    with pytest.raises(CannotCheckError, match="fits no form"):
        check(thing)
