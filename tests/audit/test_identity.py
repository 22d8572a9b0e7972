"""What a subject is told to be: Python that builds the same encoding, run against the subject."""

from copy import deepcopy

import pytest
import torch
from diffusers.models.embeddings import get_2d_sincos_pos_embed
from tests.audit.zoo.arithmetic import apart, halves, neighbors, waves
from tests.audit.zoo.right import added, bias, rotary
from tests.audit.zoo.wrong.bias import WRONG as BIASES
from torch import nn

import posenc
from posenc import Positional, Rotary, Sinusoidal, frequencies
from posenc.audit import check, parity
from posenc.frequencies import Geometric, Linear
from posenc.numerics import slopes

ALONE = ("encodes-the-sequence", "has-known-frequencies", "is-a-known-function",
         "has-known-slopes", "has-known-buckets")  # fmt: skip
SLOW = pytest.mark.slow("more of its kind", spares=3)


def identity(thing, **options) -> str:
    return check(thing, only=ALONE, **options).identity


def told(thing) -> str:
    """The Python in the line that says what a thing is."""
    said = identity(thing).partition("equal to ")[2]
    return said.partition(" within ")[0].partition(", bucket")[0]


def built(text):
    made = eval(text, {"posenc": posenc, **vars(frequencies)})
    if not isinstance(made, Positional):
        return made
    return next(iter((*made.tokens, *made.queries_keys, *made.scores)))


def names(report) -> list[str]:
    return [each.name for each in report.faults]


KNOWN = {
    rotary.NeoX: "posenc.recipes.gpt_neox(64)",
    rotary.Llama3: "posenc.recipes.llama3(64, factor=8.0)",
    rotary.GPTJ: "posenc.Rotary(Geometric(32), pairing='interleaved')",
    rotary.YaRN: "posenc.Rotary(YaRN(Geometric(64), 4.0, trained_length=2048))",
    rotary.Proportional: "posenc.Rotary(Proportional(64, fraction=0.25))",
    rotary.DeepSeek: (
        "posenc.Rotary(Geometric(32), head_dim=48, pairing='interleaved', rotated='suffix')"
    ),
    added.whisper: "posenc.recipes.whisper_encoder(64)",
    added.Tutorial: "posenc.Sinusoidal(64)",  # its embeddings are not multiplied with √d
    bias.alibi: "posenc.recipes.bloom(8)",
    bias.T5Decoder: "posenc.recipes.t5(8, decoder=True)",
}


@pytest.mark.parametrize("thing", KNOWN, ids=lambda thing: thing.__name__)
def test_what_is_named_does_alike(thing):
    assert told(thing) == KNOWN[thing]
    ours = built(KNOWN[thing])
    if isinstance(ours, Rotary):
        found = parity(thing, "exact", encoding=ours, length=40, dtype=torch.float32)
        assert found.q.largest < 3e-5


# Frequencies.


class Frequencies(rotary.Both):
    """Halves of queries and keys turned by frequencies as they are given."""

    def __init__(self, frequencies):
        super().__init__()
        self.inv_freq, self.head_dim = frequencies.float(), 2 * len(frequencies)

    def turn(self, x, positions):
        angles = positions[:, None, :, None].float() * self.inv_freq
        return halves(x, angles.cos(), angles.sin())


def rates(schedule):
    return torch.tensor([2 * torch.pi / w for w in schedule.wavelengths()])


@SLOW
@pytest.mark.parametrize(
    ("base", "factor"),
    [*((b, f) for b in (9_990.0, 499_000.0, 12_346.0, 101.0) for f in (1, 4)),
     *((base, 1) for base in (8e7, 3e6, 123456.0, 12345.5))],
)  # fmt: skip
def test_a_base_near_one_that_is_known_is_its_own(base, factor):
    plain = Geometric(64, base)
    found = check(Frequencies(rates(plain if factor == 1 else Linear(plain, factor))), only=ALONE)
    said = f"Geometric(64, base={base!r})"
    said = said if factor == 1 else f"Linear({said}, {float(factor)})"
    assert f"equal to posenc.Rotary({said})" in found.identity
    assert not found.faults


@pytest.mark.parametrize(
    ("against", "told"), [([31], "pair(s) 31 turn"), (range(1, 32, 2), "1, 3, 5, 7, … (16 in all)")]
)
def test_pairs_that_turn_against_others_are_no_known_schedule(against, told):
    frequencies = rates(Geometric(64))
    frequencies[list(against)] *= -1
    found = check(Frequencies(frequencies), only=ALONE)
    (one,) = found.faults
    assert (one.name, one.severity) == ("unknown-frequencies", "wrong")
    assert told in one.said
    assert "equal to" not in found.identity
    assert "NOTE turned-backwards" in str(check(Frequencies(-frequencies.abs()), only=ALONE))


def test_a_schedule_that_stretches_fast_pairs_alone_has_its_borders_exchanged():
    frequencies = rates(Geometric(64))
    frequencies[:16] /= 8
    (one,) = check(Frequencies(frequencies), only=ALONE).faults
    assert one.name == "unknown-frequencies"
    assert "borders of YaRN or Llama 3 are exchanged" in one.said


@SLOW
@pytest.mark.parametrize("dim", [64, 512, 1024])
def test_an_exponent_that_slipped_is_named_where_it_is_near_the_right_one(dim):
    pairs = torch.arange(dim // 2, dtype=torch.float64)
    found = check(Frequencies(10_000.0 ** (-pairs / (dim // 2 - 1))), only=ALONE)
    (slip,) = (each for each in found.faults if each.severity == "wrong")
    assert slip.name == "wrong-exponent"
    assert f"i / {dim // 2 - 1} instead of i / {dim // 2}" in slip.said


class Within(rotary.Both):
    """Channels from ``start`` on turned, of heads that are 64 wide."""

    def __init__(self, start):
        super().__init__()
        self.start = start

    def turn(self, x, positions):
        before, turned, after = x.split((self.start, 32, 32 - self.start), -1)
        return torch.cat((before, halves(turned, *waves(positions[:, None], 32)), after), -1)


@pytest.mark.parametrize(
    ("start", "words", "ours"),
    [
        (0, "32 of 64 channels", "Geometric(32), head_dim=64"),
        (16, "channels 16 to 47 of 64", "Geometric(32)"),
        (32, "the last 32 of 64 channels", "Geometric(32), head_dim=64, rotated='suffix'"),
    ],
)
def test_where_the_turned_channels_stand_is_told_and_held_to_the_configuration(start, words, ours):
    config = {
        "model_type": "gpt_neox", "hidden_size": 256, "num_attention_heads": 4,
        "rotary_pct": 0.5, "rotary_emb_base": 10_000,
    }  # fmt: skip
    found = check(Within(start), only=(*ALONE, "is-as-configured"), config=config)
    assert f"encoding, {words}" in found.identity
    assert f"equal to posenc.Rotary({ours}) within" in found.identity
    assert names(found) == ["unlike-its-configuration"] * (start > 0)


def test_channels_that_come_out_in_another_order_are_taken_back():
    def turn(x, positions):
        turned = neighbors(x, *waves(positions[:, None], 16))
        return torch.cat((turned[..., 0::2], turned[..., 1::2]), -1)

    report = check(lambda q, k, positions: (turn(q, positions), turn(k, positions)), dim=16)
    assert report.status == 0
    assert "interleaved pairing, base 10,000" in report.identity
    assert "another order of channels" in report.understood
    assert check(lambda q, k, positions: (turn(q, positions), q), dim=16).status == 1


class InRuns(nn.Module):
    """An engine that knows text and video, and gives axes runs of pairs, or deals them in turn."""

    def __init__(self, arrangement):
        super().__init__()
        self.video = posenc.MultimodalRotary(Rotary(128, base=5e6), (24, 20, 20), arrangement)

    def forward(self, q, k, position_ids):
        if position_ids.ndim == 2:
            position_ids = position_ids.expand(3, -1, -1)
        return self.video(q, k, position_ids.movedim(0, -1))


@pytest.mark.parametrize("arrangement", ["contiguous", "interleaved"])
def test_axes_of_pairs_are_held_to_the_configuration_off_the_diagonal(arrangement):
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]}
    config = {
        "model_type": "qwen3_vl_text", "hidden_size": 256, "num_attention_heads": 2,
        "head_dim": 128, "rope_parameters": {**rope, "mrope_interleaved": True},
    }  # fmt: skip
    asked = ("encodes-the-sequence", "is-as-configured", "axes-go-as-configured")
    found = check(InRuns(arrangement), only=asked, config=config, length=64)
    assert names(found) == ["unlike-its-configuration"] * (arrangement == "contiguous")


# What is added.


class Table(nn.Module):
    """A table, added to content times a number, of one length or any that is no longer."""

    def __init__(self, table, times=1.0, cut=True):
        super().__init__()
        self.table, self.cut = nn.Parameter(table.float(), requires_grad=False), cut
        self.times = times

    def forward(self, x):
        return x * self.times + (self.table[: x.shape[1]] if self.cut else self.table).to(x.dtype)


@pytest.mark.parametrize("times", [1.0, 4.0, 0.25], ids=["plain", "root", "quarter"])
@pytest.mark.parametrize("convention", ["paper", "tensor2tensor", "double_exponent"])
def test_what_content_is_multiplied_with_is_told(convention, times):
    thing = Table(Sinusoidal(16, convention=convention).table(torch.arange(99)), times)
    x = torch.randn(1, 99, 16)
    assert torch.allclose(built(told(thing)).eval()(x), thing(x), atol=1e-6)
    report = check(thing, only=["encodes-the-sequence", "keeps-the-size-of-content"])
    assert [note.name for note in report.notes] == ["content-scaled"] * (times == 0.25)


def test_what_content_is_multiplied_with_is_told_of_patches_and_learned_tables():
    table = get_2d_sincos_pos_embed(16, (7, 7), base_size=7, output_type="pt")
    x = torch.randn(1, 49, 16)
    thing, points = Table(table, 4.0), posenc.positions.grid(7, 7)
    assert torch.allclose(built(told(thing))(x, points), thing(x), atol=1e-6)
    learned = Table(torch.randn(99, 16), 4.0).requires_grad_()
    assert "added to content times the root of its width" in identity(learned)


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "whole"])
@pytest.mark.parametrize("where", ["", " behind 1 of zeros", " before 1 of zeros"])
def test_sines_of_patches_are_named_also_where_one_length_is_taken(where, cut):
    table = get_2d_sincos_pos_embed(16, (14, 14), base_size=14, output_type="pt").float()
    pad = (0, 0, "behind" in where, "before" in where)
    found = identity(Table(nn.functional.pad(table, pad), cut=cut))
    assert f"14 × 14 patches{where}, equal to posenc.AxialSinusoidal(16, form='mae'" in found


class SecondHalfOfNoise(added.OnGrid):
    """The half that was not looked at."""

    def forward(self, x):
        made = super().forward(x).clone()
        noise = torch.randn(64, 64, 16, generator=torch.Generator().manual_seed(0))
        made[..., 16:] = noise[: x.shape[1], : x.shape[2]]
        return made


class RowsReadAsColumns(added.OnGrid):
    """Right for squares alone."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).reshape(x.shape)


@pytest.mark.parametrize("kind", [SecondHalfOfNoise, RowsReadAsColumns])
def test_a_map_is_called_what_all_of_it_is(kind):
    """The first half of the channels along the first row of a square was taken for all."""
    assert "at all of 8 × 10 points" in check(added.OnGrid, layout="bhwd").identity
    report = check(kind, layout="bhwd")
    assert report.identity == ""
    (asked,) = (each for each in report.verdicts if each.question == "is-a-known-function")
    assert [fault.name for fault in asked.faults] == ["unknown-function"]


# Biases.


def of_distances(change, heads, dtype=torch.float32):
    falls = torch.tensor(slopes.alibi(heads))[:, None, None]

    def bias_of(q_len, k_len):
        return -(falls * change(apart(q_len, k_len).float())).to(dtype)

    return bias_of


@SLOW
@pytest.mark.parametrize("heads", [8, 12])
@pytest.mark.parametrize(
    "change",
    [
        lambda away: away.where(away < 200, 1.01 * away),
        lambda away: away.where(away < 200, 1.001 * away),
        lambda away: away.where(away < 500, away + 1),
        lambda away: away.where(away < 12, 1.01 * away),
    ],
)
def test_in_float32_a_line_is_one_to_the_last_key(change, heads):
    """Slopes of a power of two have few digits, and are no numbers of 16 bits for that."""
    assert not told(of_distances(change, heads))


@SLOW
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("heads", [8, 12])
def test_what_16_bits_hide_is_said(dtype, heads):
    rounded = identity(of_distances(torch.abs, heads, dtype))
    assert rounded.endswith("of a slope, as far as numbers of 16 bits tell")
    assert "16 bits" not in identity(of_distances(torch.abs, heads))


@pytest.mark.parametrize("name", ["grows with distance", "clipped far"])
def test_what_is_wrong_equals_nothing(name):
    """A bias that grows, or leaves its line far away, is no ALiBi, near as its slopes may be."""
    (thing,) = (specimen.thing for specimen in BIASES if specimen.name == name)
    assert identity(thing) == ""


@SLOW
@pytest.mark.parametrize(
    ("later", "reserved"),
    [
        (lambda away: -away, False),
        (lambda away: away, False),
        (torch.zeros_like, False),
        (lambda away: torch.full_like(away, 1e7), False),
        (lambda away: -2 * away, True),
        (lambda away: away - 1, True),
    ],
)
def test_it_tells_where_later_keys_receive_another_bias(later, reserved):
    said = identity(of_distances(lambda away: torch.where(away < 0, later(away), away), 8))
    assert said.startswith("ALiBi for 8 heads: equal to posenc.recipes.bloom(8)")
    assert ("those after it receive another bias" in said) == reserved


def test_every_unlike_module_of_a_model_is_asked():
    from transformers import LlamaConfig, LlamaModel, T5Config, T5Model

    t5 = T5Model(T5Config(d_model=32, d_kv=8, num_heads=4, num_layers=2, d_ff=32, vocab_size=9))
    found = check(t5, only=("tells-distances-apart",)).identity
    assert "posenc.recipes.t5(4), " in found
    assert "posenc.recipes.t5(4, decoder=True), " in found
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
                         num_hidden_layers=3, intermediate_size=32, vocab_size=9)  # fmt: skip
    model = LlamaModel(config)
    for layer in model.layers:
        layer.self_attn.rotary_emb = deepcopy(model.rotary_emb)
    assert "has 1 positional part" in check(model, only=ALONE).understood
    model.layers[2].self_attn.rotary_emb.inv_freq *= 1.03
    found = check(model, only=ALONE)
    assert "has 2 positional parts" in found.understood
    assert names(found) == ["unknown-frequencies"]
