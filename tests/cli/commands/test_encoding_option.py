"""``--encoding``: any encoding, in every command that shows one."""

import csv
import io
import json
import math

import pytest
import torch

from posenc import ALiBi, Rotary, T5Bias
from posenc.frequencies import Geometric, YaRN
from posenc.numerics.buckets import t5_buckets

YARN = "Rotary(YaRN(Geometric(16, base=500000), factor=16, trained_length=8192))"
SHOWING = ["table", "explain", "heatmap", "curves", "shift", "distance"]


def as_json(run, *words):
    ran = run(*words, "--format", "json")
    assert ran.status == 0, ran
    return json.loads(ran.out)


@pytest.mark.slow("every kind by every command", spares=3)
@pytest.mark.parametrize("encoding", ["Sinusoidal(8)", "Learned(8, 300)", "Rotary(8)", YARN,
                                      "XPos(Rotary(8))", "QueryTemperature(8)", "ALiBi(8)",
                                      "T5Bias(8)", "KERPLE(8)", "FIRE(8)"])  # fmt: skip
@pytest.mark.parametrize("command", SHOWING)
def test_every_command_shows_every_kind(run, command, encoding):
    few = ("--length", 4) if command not in ("explain",) else ("--dimension", 0)
    ran = run(command, "--encoding", encoding, *few)
    assert (ran.status, ran.err) == (0, "")
    random = encoding.startswith(("Learned", "T5", "KERPLE", "FIRE"))
    if command in ("table", "explain", "distance") and random:
        assert "seeded random" in ran.out
    assert json.loads(run(command, "--encoding", encoding, *few, "--format", "json").out)


def test_the_table_of_a_rotary_encoding(run):
    told = as_json(run, "table", "--encoding", YARN, "--length", 5, "--start", 3)
    rotary = Rotary(YaRN(Geometric(16, base=500_000), factor=16, trained_length=8192))
    table = rotary.table(torch.arange(3, 8))
    assert told["columns"][:4] == ["cos_0", "sin_0", "cos_1", "sin_1"]
    rows = torch.tensor(told["rows"])
    assert torch.equal(rows[:, ::2], table[:, 0])
    assert torch.equal(rows[:, 1::2], table[:, 1])


def test_the_table_of_a_bias_has_a_row_a_distance(run):
    ran = run("table", "--encoding", "ALiBi(4)", "--length", 3, "--start", -1, "--format", "csv")
    rows = list(csv.reader(io.StringIO(ran.out)))
    assert rows[0] == ["distance", "head_0", "head_1", "head_2", "head_3"]
    assert [[float(cell) for cell in row] for row in rows[1:]] == [
        [-1, -0.25, -0.0625, -0.015625, -0.00390625],
        [0, 0, 0, 0, 0],
        [1, -0.25, -0.0625, -0.015625, -0.00390625],
    ]


@pytest.mark.parametrize("column", range(8))
def test_the_steps_to_a_rotary_number_lead_there(run, column):
    told = as_json(run, "explain", "--encoding", YARN, "--position", 100, "--dimension", column)
    steps = {step["name"]: step["value"] for step in told["steps"]}
    rotary = Rotary(YaRN(Geometric(16, base=500_000), factor=16, trained_length=8192))
    value = rotary.table(torch.tensor([100]), dtype=torch.float64)[0, column % 2, column // 2]
    assert told["value"] == value.item()
    assert steps["frequency"] == pytest.approx(500_000 ** (-2 * (column // 2) / 16))
    assert steps["angle"] == pytest.approx(100 * steps["YaRN"], rel=1e-12)
    function = (math.cos, math.sin)[column % 2]
    factor = 0.1 * math.log(16) + 1
    assert factor * function(steps["angle"]) == pytest.approx(told["value"], abs=1e-12)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Rotary(8)", "channels 1 and 5"),
        ("Rotary(8, pairing='interleaved')", "channels 2 and 3"),
        ("Rotary(8, head_dim=12, rotated='suffix')", "channels 5 and 9"),
    ],
)
def test_the_channels_of_a_pair_are_named(run, text, pair):
    """They are the ones that a rotation by this pair alone changes."""
    from posenc.encodings.expression import encoding_from

    rotary = encoding_from(text)
    table = rotary.table(torch.zeros(1, dtype=torch.int64))
    table[0, 0, 1], table[0, 1, 1] = 0.0, 1.0  # pair 1 by a quarter turn, all others not at all
    x = torch.arange(1.0, rotary.head_dim + 1).view(1, 1, -1)
    changed = (rotary.encode_queries(x, table) != x).flatten().nonzero().flatten().tolist()
    assert pair == f"channels {changed[0]} and {changed[1]}"
    assert pair in run("explain", "--encoding", text, "--dimension", 2).out


@pytest.mark.parametrize("heads", [8, 12])
def test_the_steps_to_alibi(run, heads):
    for head in range(heads):
        words = ("--encoding", f"ALiBi({heads})", "--position", -7, "--dimension", head)
        told = as_json(run, "explain", *words)
        slope = told["steps"][0]
        power = slope["numbers"].split(")")[0].removeprefix("2^(").replace("·", "*")
        assert slope["value"] == pytest.approx(2.0 ** eval(power), rel=1e-5)
        assert told["value"] == -slope["value"] * 7
        assert (
            told["value"]
            == ALiBi(heads).profile(torch.tensor(-7), dtype=torch.float64)[head].item()
        )


def test_the_steps_to_t5(run):
    told = as_json(run, "explain", "--encoding", "T5Bias(4)", "--position", -20, "--dimension", 3)
    assert told["steps"][0]["value"] == t5_buckets(torch.tensor(-20)).item()
    torch.manual_seed(0)
    assert told["value"] == T5Bias(4).profile(torch.tensor([-20]))[3, 0].item()


def test_a_heatmap_of_a_bias_is_one_head_query_by_key(run, refused):
    told = as_json(run, "heatmap", "--encoding", "ALiBi(2)", "--length", 4, "--head", 1)
    positions = torch.arange(4)
    assert torch.equal(torch.tensor(told["rows"]), ALiBi(2).table(positions, positions)[1])
    assert "head 1" in run("heatmap", "--encoding", "ALiBi(2)", "--length", 4, "--head", 1).out
    assert "--head is 2" in refused("heatmap", "--encoding", "ALiBi(2)", "--head", 2)
    assert "this encoding is none" in refused("heatmap", "--encoding", "Rotary(8)", "--head", 1)
    assert "is for the terminal" in refused("heatmap", "--first-dimension", 3, "--format", "csv")
    assert "up to 4096" in refused("heatmap", "--encoding", "ALiBi(2)", "--length", 5000)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_the_shift_of_a_rotary_encoding_moves_its_keys(run, pairing):
    text = f"Rotary(8, pairing='{pairing}')"
    told = as_json(run, "shift", "--encoding", text, "--offset", -3)
    rotary, x = Rotary(8, pairing=pairing), torch.randn(1, 1, 8, dtype=torch.float64)
    here, there = (
        rotary.encode_keys(x, rotary.table(torch.tensor([p]), dtype=torch.float64)).flatten()
        for p in (5, 2)
    )
    moved = torch.tensor(told["matrix"], dtype=torch.float64) @ here
    torch.testing.assert_close(moved, there, rtol=0, atol=1e-14)
    assert told["exact"] is True
    assert told["residual"] < 1e-14


def test_a_factor_of_all_keys_is_no_part_of_the_map(run):
    """YaRN scales keys of every position alike, so that what moves them only turns."""
    text = "Rotary(YaRN(Geometric(8), factor=4.0, trained_length=64))"
    told = as_json(run, "shift", "--encoding", text, "--offset", -3)
    assert told["exact"] is True
    assert told["residual"] < 1e-12
    matrix = torch.tensor(told["matrix"], dtype=torch.float64)
    torch.testing.assert_close(matrix @ matrix.mT, torch.eye(8, dtype=torch.float64))
    assert "the rotation of each pair" in run("shift", "--encoding", text).out


def test_a_rotation_of_a_plane_across_all_channels_is_none_of_pairs(run):
    told = run("shift", "--encoding", "GRAPE(8, heads=1)", "--offset", 3).out
    assert "one rotation: largest error" in told
    assert "pair" not in told


def test_what_scales_by_the_position_is_no_rotation(run):
    assert "one map, which scales too" in run("shift", "--encoding", "XPos(Rotary(8))").out


def test_keys_without_a_map_have_the_best_one(run):
    text = "Rotary(8, arithmetic='llama.cpp')"
    told = as_json(run, "shift", "--encoding", text, "--offset", 1000, "--length", 4096)
    assert told["exact"] is False
    matrix = torch.tensor(told["matrix"], dtype=torch.float64)
    rotary = Rotary(8, arithmetic="llama.cpp")

    def keys(start):
        table = rotary.table(torch.arange(start, start + 4096), dtype=torch.float64)
        units = torch.eye(8, dtype=torch.float64).unsqueeze(1).expand(8, 4096, 8)
        return rotary.encode_keys(units.unsqueeze(0), table)[0].permute(1, 2, 0)

    squares = (matrix @ keys(0) - keys(1000)).square().sum()
    for nudge in (1e-4, -1e-4):
        assert ((matrix + nudge) @ keys(0) - keys(1000)).square().sum() > squares


def test_what_does_not_turn_has_no_exact_shift(run):
    words = ("--encoding", "QueryTemperature(4, period=16)", "--length", 64)
    assert as_json(run, "shift", *words)["exact"] is True  # of keys, which stay as they are
    words = ("--encoding", "Learned(4, 64)", "--length", 40)
    assert "the best map (the encoding is not sinusoidal)" in run("shift", *words).out


def test_a_bias_is_told_how_little_a_shift_changes(run, refused):
    assert as_json(run, "shift", "--encoding", "ALiBi(2)")["largest_change"] == 0
    words = ("--encoding", "FIRE(2, threshold=1.0)", "--length", 20)
    assert as_json(run, "shift", *words)["largest_change"] > 1e-3
    assert "has no map to print as csv" in refused(
        "shift", "--encoding", "ALiBi(2)", "--format", "csv"
    )


def test_distances_of_a_bias_are_query_minus_key(run):
    told = as_json(run, "distance", "--encoding", "ALiBi(1, is_causal=True)", "--length", 3)
    assert told["distances"] == [-2, -1, 0, 1, 2]
    # Keys after their query have a negative distance, and no penalty here.
    assert told["head_0"] == [0, 0, 0, -1 / 256, -2 / 256]


def test_distances_of_a_rotary_encoding_are_query_minus_key(run):
    told = as_json(run, "distance", "--encoding", "Rotary(8)", "--length", 50)
    expected = [sum(math.cos(d * w) for w in (1, 0.1, 0.01, 0.001)) / 4 for d in range(50)]
    assert told["score"] == pytest.approx(expected, abs=1e-12)
    # xPos fades where the query comes after its key, by ζ_i^(distance / 512) in each pair.
    faded = as_json(run, "distance", "--encoding", "XPos(Rotary(8))", "--length", 50)["score"]
    pairs = [(0.1**i, (i / 4 + 0.4) / 1.4) for i in range(4)]
    expected = [sum(math.cos(d * w) * z ** (d / 512) for w, z in pairs) / 4 for d in range(50)]
    assert faded == pytest.approx(expected, abs=1e-12)


def test_an_expression_that_is_wrong_is_one_line(refused):
    assert "'Rotry' is no encoding; did you mean 'Rotary'?" in refused(
        "table", "--encoding", "Rotry(8)"
    )
    assert "leave --dim out" in refused("table", "--encoding", "Rotary(8)", "--dim", 8)
    assert "posenc walk --encoding shows it" in refused("table", "--encoding", "CoPE(2, 8, 9)")
    assert "head is 9; with heads 8" in refused(
        "explain", "--encoding", "ALiBi(8)", "--dimension", 9
    )


@pytest.mark.parametrize("command", SHOWING)
def test_json_says_all_that_a_sinusoidal_encoding_was_given(run, command):
    options = ("--format", "json")
    for given, formula in (
        ("Sinusoidal(4, offset=2)", "; p = position + 2"),
        ("Sinusoidal(4, arithmetic='float32')", ""),
        ("Sinusoidal(4, scale='sqrt_dim')", ""),
    ):
        about = json.loads(run(command, "--encoding", given, *options).out)
        assert about["encoding"] == given
        plain = json.loads(run(command, "--encoding", "Sinusoidal(4)", *options).out)
        assert plain["encoding"] == "Sinusoidal"
        assert about["formula"] == plain["formula"] + formula


def test_a_heatmap_says_what_a_sinusoidal_encoding_was_given_and_which_head_is_drawn(run):
    drawn = run("heatmap", "--length", 4, "--encoding", "Sinusoidal(4, offset=2)")
    assert "Sinusoidal(4, offset=2): 4 positions" in " ".join(drawn.out.split())
    options = ("--length", 4, "--encoding", "ALiBi(2)", "--format", "json")
    assert json.loads(run("heatmap", *options).out)["head"] == 0
    assert json.loads(run("heatmap", *options, "--head", 1).out)["head"] == 1
