"""``posenc binary``, ``shift``, ``distance``, ``compare``: the numbers of inspection, printed."""

import csv
import io
import json
import math

import pytest
import torch

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS

COMMANDS = ["binary", "shift", "distance", "compare"]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_form_is_printed_and_nothing_else(run, command):
    text, rows, objects = (run(command, "--format", form) for form in ("text", "csv", "json"))
    for ran in (text, rows, objects):
        assert (ran.status, ran.err) == (0, "")
    assert "\x1b" not in text.out  # a pipe gets no colors
    assert len(table(rows.out)) > 1
    assert "format" not in json.loads(objects.out)


def test_binary_counts(run):
    rows = json.loads(run("binary", "--length", 16, "--format", "json").out)["rows"]
    for position, row in enumerate(rows):
        assert sum(row[f"bit {bit}"] << bit for bit in range(4)) == position
        assert row["sine 0"] == pytest.approx(math.sin(position))
    assert "101" in run("binary", "--length", 8).out


def test_shift_is_a_rotation_or_says_why_not(run):
    found = json.loads(run("shift", "--format", "json").out)
    assert found["matrix"][0][0] == pytest.approx(math.cos(10))
    assert found["matrix"][0][1] == pytest.approx(math.sin(10))
    assert found["exact"] is True
    assert found["residual"] < 1e-14
    ran = run("shift", "--convention", "per_dimension")
    assert "the best map (sines and cosines have no common frequency)" in ran.out


def test_what_does_not_move_is_no_rotation(run):
    for words in (("--offset", 0), ("--encoding", "QueryTemperature(4)")):
        out = run("shift", *words).out
        assert "everything stays where it is: largest error 0" in out
        assert "rotation" not in out


def test_the_shift_of_queries_is_told_where_it_is_not_that_of_keys(run):
    words = ("shift", "--encoding", "QueryTemperature(4, period=2)", "--offset", 4, "--length", 8)
    out = run(*words).out
    assert "PE(p + 4) = M PE(p) of keys, with M =" in out
    assert "key: every key stays where it is: largest error 0" in out
    assert "query: the best map (no map takes queries of every position along)" in out
    found = json.loads(run(*words, "--format", "json").out)
    assert (found["of"], found["exact"], found["queries"]["exact"]) == ("keys", True, False)
    factor = [1 + math.log(1 + (p + 1) // 2) / 10 for p in range(12)]
    best = sum(factor[p + 4] * factor[p] for p in range(8)) / sum(f * f for f in factor[:8])
    assert found["queries"]["matrix"][0] == pytest.approx([best, 0, 0, 0])
    # XPos multiplies queries by what it divides keys by.
    found = json.loads(run("shift", "--encoding", "XPos(Rotary(4))", "--format", "json").out)
    keys, queries = (
        torch.tensor(each["matrix"], dtype=torch.float64) for each in (found, found["queries"])
    )
    torch.testing.assert_close(keys.mT @ queries, torch.eye(4, dtype=torch.float64))
    assert not keys.allclose(queries)
    assert "query" not in run("shift", "--encoding", "Rotary(4)").out


def test_distance_names_the_closest_pair(run):
    ran = run("distance", "--dim", 2, "--length", 45)
    assert "closest pair: positions 0 and 44, 0.0177 apart" in ran.out
    rows = table(run("distance", "--dim", 2, "--length", 45, "--format", "csv").out)
    assert float(rows[44]["dot_product"]) == pytest.approx(math.cos(44))


def test_compare_tells_paired_conventions_from_others(run):
    found = json.loads(run("compare", "--dim", 16, "--format", "json").out)["conventions"]
    assert found["paper"]["shift_residual"] < 1e-13 < 0.1 < found["per_dimension"]["shift_residual"]
    assert found["paper"]["norm_spread"] < 1e-12 < 0.1 < found["double_exponent"]["norm_spread"]


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8])
def test_compare_names_the_conventions_that_have_no_such_width(run, dim):
    words = ("compare", "--dim", dim, "--length", 12)
    told = json.loads(run(*words, "--format", "json").out)
    without = told["not_at_dim"]
    assert sorted([*told["conventions"], *without]) == sorted(CONVENTIONS)
    for name in without:
        with pytest.raises(ValueError, match=f"dim is {dim}"):
            Sinusoidal(dim, convention=name)
    said = f"ot at dim {dim}: {', '.join(without)}"
    assert (f"N{said}.\n" in run(*words).out) == bool(without)
    assert run(*words, "--format", "csv").err == (f"posenc: n{said}\n" if without else "")


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_pictures_give_their_numbers_too(run, refused, command):
    few = ("--length", 3, "--dim", 4)
    rows = table(run(command, *few, "--format", "csv").out)
    assert [float(row["dim_0"]) for row in rows] == pytest.approx([math.sin(p) for p in range(3)])
    found = json.loads(run(command, *few, "--format", "json").out)
    assert len(found["rows"]) == 3
    assert "give one of them" in refused(command, "--format", "csv", "--output", "a.png")


def test_chosen_curves_give_their_columns_alone(run, refused):
    ran = run("curves", "--length", 2, "--dim", 8, "--dimensions", 6, "--format", "csv")
    assert ran.out.splitlines()[0] == "position,dim_6"
    assert "dimension 9 is not in the table" in refused(
        "curves", "--dim", 8, "--dimensions", 9, "--format", "csv"
    )


def test_what_cannot_be_shown_is_refused(refused):
    assert "--length is 0" in refused("binary", "--length", 0)
    assert "sines come in pairs" in refused("binary", "--dim", 3)
    assert "ask for fewer positions" in refused("binary", "--length", 10**12)
    assert "--base is 0.5; here each sine is slower" in refused("binary", "--base", 0.5)
    assert "--length is 1" in refused("distance", "--length", 1)
    assert "it must be at least 11" in refused("compare", "--length", 10)
    assert "odd" in refused("shift", "--convention", "odd")
