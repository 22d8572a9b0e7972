"""``posenc table`` and ``posenc explain`` against the worked numbers and the library."""

import csv
import io
import json
from math import ulp
from pathlib import Path

import pytest
import torch

from posenc import Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS

EXAMPLES = json.loads((Path(__file__).parents[2] / "data" / "worked_examples.json").read_text())


def table_of(run, *words):
    return json.loads(run("table", *words, "--format", "json").out)["rows"]


def test_text_shows_the_worked_numbers(run):
    worked_rows = EXAMPLES["sinusoidal_n100_d4"]["values"]
    lines = run("table", "--length", 10, "--dim", 4, "--base", 100).out.splitlines()
    assert lines[0].split() == ["position", "0", "sin", "1", "cos", "2", "sin", "3", "cos"]
    for position, (line, worked) in enumerate(zip(lines[1:], worked_rows, strict=True)):
        shown = [float(cell) for cell in line.split()]
        assert shown == [position, *worked]


def test_csv_and_json_read_back_as_the_same_float32(run):
    words = ("--length", 7, "--dim", 6, "--start", -3)
    expected = Sinusoidal(6).table(torch.arange(-3, 4))
    from_json = torch.tensor(table_of(run, *words))
    read = list(csv.reader(io.StringIO(run("table", *words, "--format", "csv").out)))
    from_csv = torch.tensor([[float(cell) for cell in row] for row in read[1:]])
    assert torch.equal(from_json, expected)
    assert torch.equal(from_csv[:, 1:], expected)
    assert from_csv[:, 0].tolist() == list(range(-3, 4))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_each_dtype_reads_back_exactly(run, dtype):
    rows = table_of(run, "--length", 5, "--dtype", dtype)
    kind = getattr(torch, dtype)
    expected = Sinusoidal(4).table(torch.arange(5), dtype=kind)
    assert torch.equal(torch.tensor(rows, dtype=kind), expected)


def test_a_table_longer_than_a_block_has_every_row_once(run):
    rows = table_of(run, "--length", 2500, "--dim", 2)
    assert torch.equal(torch.tensor(rows), Sinusoidal(2).table(torch.arange(2500)))


def test_a_far_position_is_as_exact_as_the_library(run):
    rows = table_of(run, "--length", 1, "--start", 2**60)
    assert torch.equal(torch.tensor(rows), Sinusoidal(4).table(torch.tensor([2**60])))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--length", 0), "--length is 0; it must be at least 1"),
        (("--dim", 0), "dim is 0"),
        (("--dim", -4), "dim is -4"),
        (("--convention", "nonsense"), "'nonsense'; it must be 'paper'"),
        (("--convention", "concatenated", "--dim", 5), "no odd width"),
        (("--base", 0), "base is 0"),
        (("--base", "nan"), "base is nan"),
    ],
)
def test_what_cannot_be_is_refused(refused, words, said):
    assert said in refused("table", *words)


def test_explain_gives_the_worked_numbers_of_position_one(run):
    # Some of these digits are cut off in the source, not rounded.
    for dimension, worked in enumerate(EXAMPLES["by_hand_d6_n10000"]["values"]["1"]):
        words = ("explain", "--position", 1, "--dimension", dimension, "--dim", 6)
        about = json.loads(run(*words, "--format", "json").out)
        assert about["value"] == pytest.approx(worked, abs=1e-5)


def test_explain_puts_the_numbers_in_line_by_line(run):
    said = run("explain", "--position", 3, "--dimension", 2, "--dim", 4, "--base", 100).out
    for part in ("100^(1/2)", "= 10", "3 / 10", "= 0.3", "sin(0.3)", "= 0.2955202067"):
        assert part in said
    assert "2π × n^e = 62.83185307 positions" in said


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("dim", [8, 7])
def test_explain_is_right_for_every_channel_of_every_convention(run, convention, dim):
    try:
        encoding = Sinusoidal(dim, 50.0, convention)
    except ValueError:
        return  # This convention has no odd width, which is tested with the table.
    row = encoding.table(torch.tensor([5]), dtype=torch.float64)[0].tolist()
    for dimension in range(dim):
        about = json.loads(
            run(
                *("explain", "--position", 5, "--dimension", dimension, "--dim", dim),
                *("--base", 50, "--convention", convention, "--format", "json"),
            ).out
        )
        # Explained values are the nearest float64; those of a table lie within 3 units of it.
        assert abs(about["value"] - row[dimension]) <= 3 * ulp(row[dimension])
        steps = {step["name"]: step for step in about["steps"]}
        if "angle" in steps:
            # What is shown leads to the value: the named function of the shown angle.
            function = {"sin": torch.sin, "cos": torch.cos}[steps["value"]["formula"][:3]]
            angle = torch.tensor(steps["angle"]["value"], dtype=torch.float64)
            assert function(angle).item() == pytest.approx(about["value"], abs=1e-12)


def test_explain_refuses_a_dimension_that_is_not_there(refused):
    assert "dimension is 6; with dim 6" in refused("explain", "--dimension", 6)
    assert "dimension is -1" in refused("explain", "--dimension", -1)
