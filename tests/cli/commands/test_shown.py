"""``table``, ``shift``, ``distance``, ``compare`` and ``binary``: numbers of any encoding."""

import csv
import io
import json
import math
from pathlib import Path

import pytest
import torch

from posenc import Rotary, Sinusoidal

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "worked_examples.json").read_text())
SHOWING = ["table", "explain", "heatmap", "curves", "shift", "distance"]
F64 = torch.float64


@pytest.mark.parametrize("command", [*SHOWING, "binary", "compare"])
def test_every_form_is_printed_and_nothing_else(run, command):
    length = [] if command == "explain" else ["--length", 12]
    ran = {form: run(command, *length, "--format", form) for form in ("text", "csv", "json")}
    assert {(each.status, each.err) for each in ran.values()} == {(0, "")}
    assert ran["text"].out.isascii() or command in ("compare", "explain")
    assert len(list(csv.reader(io.StringIO(ran["csv"].out)))) > 2
    assert json.loads(ran["json"].out)


def test_a_table_shows_the_worked_numbers(run):
    lines = run("table", "--length", 10, "--dim", 4, "--base", 100).out.splitlines()
    assert lines[0].split() == ["position", "0", "sin", "1", "cos", "2", "sin", "3", "cos"]
    worked = EXAMPLES["sinusoidal_n100_d4"]["values"]
    shown = [[float(cell) for cell in line.split()] for line in lines[1:]]
    assert shown == [[position, *row] for position, row in enumerate(worked)]


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("start", "length"), [(2**60, 1), (0, 2500)])
def test_a_table_reads_back_as_the_librarys(run, told, dtype, start, length):
    words = ["table", "--dim", 2, "--start", start, "--length", length, "--dtype", dtype]
    kind = getattr(torch, dtype)
    wanted = Sinusoidal(2).table(torch.arange(length) + start, dtype=kind)
    assert torch.equal(torch.tensor(told(*words)["rows"], dtype=kind), wanted)
    read = list(csv.reader(io.StringIO(run(*words, "--format", "csv").out)))[1:]
    numbers = [[float(cell) for cell in row[1:]] for row in read]
    assert torch.equal(torch.tensor(numbers, dtype=kind), wanted)
    assert [int(row[0]) for row in read] == list(range(start, start + length))


@pytest.mark.parametrize(
    ("words", "exact", "says"),
    [
        ([], True, "the rotation of each pair"),
        (["--offset", 0], True, "everything stays where it is"),
        (["--encoding", "Rotary(YaRN(Geometric(8), 4.0, 64))"], True, "the rotation of each pair"),
        (["--encoding", "GRAPE(8, heads=1)"], True, "one rotation: largest error"),
        (["--encoding", "XPos(Rotary(8))"], True, "one map, which scales too"),
        (["--encoding", "QueryTemperature(4, period=16)"], True, "query: the best map"),
        (["--encoding", "Learned(4, 64)"], False, "the best map (the encoding is not sinusoidal)"),
        (["--convention", "per_dimension"], False, "sines and cosines have no common frequency"),
    ],
)
def test_shift_is_a_rotation_or_says_why_not(run, told, words, exact, says):
    words = ["shift", "--length", 40, *words]
    found = told(*words)
    assert found["exact"] is exact
    assert (found["residual"] < 1e-9) is exact
    assert says in run(*words).out


def test_the_shift_of_a_rotary_encoding_moves_its_keys(told):
    found = told("shift", "--encoding", "Rotary(8)", "--offset", -3)
    rotary, x = Rotary(8), torch.randn(1, 1, 8, dtype=F64)
    here, there = (
        rotary.encode_keys(x, rotary.table(torch.tensor([p]), dtype=F64)).flatten() for p in (5, 2)
    )
    moved = torch.tensor(found["matrix"], dtype=F64) @ here
    torch.testing.assert_close(moved, there, rtol=0, atol=1e-14)


def test_the_shift_of_queries_is_told_where_it_is_not_that_of_keys(told):
    words = ("--encoding", "QueryTemperature(4, period=2)", "--offset", 4, "--length", 8)
    found = told("shift", *words)
    assert (found["of"], found["exact"], found["queries"]["exact"]) == ("keys", True, False)
    factor = [1 + math.log(1 + (p + 1) // 2) / 10 for p in range(12)]
    best = sum(factor[p + 4] * factor[p] for p in range(8)) / sum(f * f for f in factor[:8])
    assert found["queries"]["matrix"][0] == pytest.approx([best, 0, 0, 0])
    found = told("shift", "--encoding", "XPos(Rotary(4))")  # queries by what divides keys
    keys, queries = (torch.tensor(each["matrix"], dtype=F64) for each in (found, found["queries"]))
    torch.testing.assert_close(keys.mT @ queries, torch.eye(4, dtype=F64))


def test_distances_are_query_minus_key(run, told):
    found = told("distance", "--encoding", "ALiBi(1, is_causal=True)", "--length", 3)
    assert found["distances"] == [-2, -1, 0, 1, 2]
    assert found["head_0"] == [0, 0, 0, -1 / 256, -2 / 256]  # keys after their query are hidden
    score = told("distance", "--encoding", "Rotary(8)", "--length", 50)["score"]
    wanted = [sum(math.cos(d * w) for w in (1, 0.1, 0.01, 0.001)) / 4 for d in range(50)]
    assert score == pytest.approx(wanted, abs=1e-12)
    # xPos fades where the query comes after its key, by ζ_i^(distance / 512) in each pair.
    faded = told("distance", "--encoding", "XPos(Rotary(8))", "--length", 50)["score"]
    pairs = [(0.1**i, (i / 4 + 0.4) / 1.4) for i in range(4)]
    wanted = [sum(math.cos(d * w) * z ** (d / 512) for w, z in pairs) / 4 for d in range(50)]
    assert faded == pytest.approx(wanted, abs=1e-12)
    out = run("distance", "--dim", 2, "--length", 45).out
    assert "closest pair: positions 0 and 44, 0.0177 apart" in out
