"""Every number that the teaching documents print, and the right value where they slip."""

import json
import math
from pathlib import Path

import pytest
import torch

from posenc import Sinusoidal
from posenc.frequencies import Geometric
from posenc.positions import consecutive

EXAMPLES = json.loads((Path(__file__).parent / "data" / "worked_examples.json").read_text())

"""These are shown in tests/transformer."""


def printed(value: float, decimals: int) -> set[float]:
    """What a careful or a hasty hand writes: rounded, or cut off."""
    shift = 10**decimals
    return {round(value, decimals), math.trunc(value * shift) / shift}


def decimals_of(number: float) -> int:
    return len(repr(float(number)).split(".")[1]) if number % 1 else 0


def same_as_printed(got: torch.Tensor, rows: list[list[float]], decimals: int) -> None:
    assert got.shape == (len(rows), len(rows[0]))
    expected = torch.tensor(rows, dtype=torch.float64)
    assert (got.double().round(decimals=decimals) - expected).abs().max() < 10.0 ** -(decimals + 3)


# The formula, n = 100 and n = 10000.


def test_the_table_of_ten_positions():
    example = EXAMPLES["sinusoidal_n100_d4"]
    table = Sinusoidal(example["d"], base=example["n"]).table(torch.tensor(example["positions"]))
    same_as_printed(table, example["values"], example["decimals"])


def test_the_divisors():
    example = EXAMPLES["div_term_n100_d4"]
    frequencies = Geometric(example["d"], base=example["n"]).radians()
    assert [float(w) for w in frequencies] == example["values"]


def test_the_rows_for_n_10000():
    example = EXAMPLES["sinusoidal_n10000_d4"]
    table = Sinusoidal(example["d"], base=example["n"]).table(
        torch.tensor([int(position) for position in example["rows"]])
    )
    same_as_printed(table, list(example["rows"].values()), example["decimals"])


@pytest.mark.parametrize("name", ["by_hand_d6_n10000", "by_hand_d4_n10000"])
def test_rows_worked_by_hand(name):
    """Digit for digit as far as they are written, rounded or cut off."""
    rows = EXAMPLES[name]["values"]
    for position, row in rows.items():
        got = Sinusoidal(len(row)).table(torch.tensor([int(position)]), dtype=torch.float64)[0]
        for value, written in zip(got.tolist(), row, strict=True):
            assert written in printed(value, decimals_of(written))


# Slips.


def test_the_values_of_a_single_sine():
    table = Sinusoidal(2).table(consecutive(5))
    for name, right in EXAMPLES["single_sine_slips"]["right"].items():
        function, position = name[:3], int(name[4:-1])
        got = table[position, 0 if function == "sin" else 1].item()
        assert round(got, 4) == right
    assert 0.87 not in printed(table[2, 0].item(), 2)  # the notes' sin(2)
    assert -0.90 not in printed(table[4, 0].item(), 2)  # the notes' sin(4)


# Embeddings and their sums.


@pytest.mark.parametrize("n", [100, 10_000])
def test_the_sums_of_a_batch(n):
    """Printed from unrounded embeddings, so within a step of the second decimal."""
    x = torch.tensor(EXAMPLES["batch_embeddings_2dp"])
    expected = torch.tensor(EXAMPLES[f"batch_sum_n{n}_2dp"])
    got = Sinusoidal(4, base=n, dropout=0.1).eval()(x)
    assert x.shape == expected.shape == (3, 6, 4)
    assert (got - expected).abs().max() < 0.011


def test_a_sentence_of_three_words():
    example = EXAMPLES["by_hand_d4_n10000"]
    x = torch.tensor([example["embeddings"]])
    assert x.shape == (1, len(example["sentence"]), 4)
    got = Sinusoidal(4)(x)[0]
    for position, row in example["values"].items():
        expected = x[0, int(position)] + torch.tensor(row)
        assert torch.allclose(got[int(position)], expected, atol=1e-4)


# The convention of the slides.


def test_the_slides_convention():
    example = EXAMPLES["per_dimension_one_based"]
    encoding = Sinusoidal(example["d"], base=example["N"], convention="per_dimension_one_based")
    table = encoding.table(consecutive(example["L"]))
    assert table.shape == (512, 14)
    for t, columns in example["first_columns"].items():
        row = table[int(t) - example["t_from"], : len(columns)].tolist()
        assert [round(value, example["decimals"]) for value in row] == columns
    assert (example["even_k"], example["odd_k"]) == ("sin", "cos")
    channel = encoding.convention.channel(0, example["d"])
    assert (channel.function, channel.first) == ("cos", example["t_from"])
    assert channel.exponent == pytest.approx(example["k_from"] / example["d"])


# The property that they show.


def test_ten_positions_further_is_one_linear_map():
    """M_k is made once, from row k, and takes every row p to row p + k."""
    offset, encoding = EXAMPLES["relative_offset"], Sinusoidal(8)
    sin, cos = encoding.table(torch.tensor([offset]), dtype=torch.float64)[0].view(4, 2).unbind(1)
    blocks = [torch.tensor([[c, s], [-s, c]]) for s, c in zip(sin, cos, strict=True)]
    shift = torch.block_diag(*blocks).double()
    for start in (0, 100, 10**6):
        here = encoding.table(consecutive(50, start=start), dtype=torch.float64)
        there = encoding.table(consecutive(50, start=start + offset), dtype=torch.float64)
        assert torch.allclose(here @ shift.T, there, rtol=0, atol=1e-14)
