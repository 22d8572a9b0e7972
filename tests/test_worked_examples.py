"""Every number that the teaching documents print, and the right value where they slip."""

import inspect
import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from posenc import Learned, Sinusoidal
from posenc.frequencies import Geometric
from posenc.positions import consecutive

EXAMPLES = json.loads((Path(__file__).parent / "data" / "worked_examples.json").read_text())

IN_THE_ENCODER = {
    "layer_norm",
    "batch_norm_contrast",
    "attention_6x6",
    "ragged_batch",
    "multi_head_shapes",
    "feed_forward_shapes",
}
"""These are shown in tests/transformer."""

HERE = {
    "sinusoidal_n100_d4",
    "div_term_n100_d4",
    "sinusoidal_n10000_d4",
    "batch_embeddings_2dp",
    "batch_sum_n100_2dp",
    "batch_sum_n10000_2dp",
    "batch_sums_note",
    "by_hand_d6_n10000",
    "by_hand_d4_n10000",
    "single_sine_slips",
    "per_dimension_one_based",
    "module_defaults",
    "figures",
    "relative_offset",
    "sentence_d14",
}


def test_no_example_is_forgotten():
    assert EXAMPLES.keys() == HERE | IN_THE_ENCODER


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


def test_the_notes_cut_digits_off():
    row = Sinusoidal(6).table(torch.tensor([1]))[0].tolist()
    assert math.trunc(row[2] * 100) / 100 == 0.04  # 0.0464: rounding would give 0.05
    assert math.trunc(row[3] * 100) / 100 == 0.99  # 0.9989: rounding would give 1.00
    assert round(row[2], 2) == 0.05
    assert round(row[3], 2) == 1.0


# Slips.


def test_cos_of_a_hundredth_is_no_995_thousandths():
    """The notes write cos(0.01) as 0.995, which is cos(0.1)."""
    cos = Sinusoidal(4).table(torch.tensor([1]))[0, 3].item()
    assert round(cos, 5) == 0.99995
    assert 0.995 not in printed(cos, 3)
    assert 0.995 in printed(Sinusoidal(4, base=100.0).table(torch.tensor([1]))[0, 3].item(), 3)


def test_the_values_of_a_single_sine():
    table = Sinusoidal(2).table(consecutive(5))
    for name, right in EXAMPLES["single_sine_slips"]["right"].items():
        function, position = name[:3], int(name[4:-1])
        got = table[position, 0 if function == "sin" else 1].item()
        assert round(got, 4) == right
    assert 0.87 not in printed(table[2, 0].item(), 2)  # the notes' sin(2)
    assert -0.90 not in printed(table[4, 0].item(), 2)  # the notes' sin(4)


def test_a_single_sine_repeats_itself_and_many_do_not():
    """Why one frequency is not enough: two positions can nearly share a value."""
    single = Sinusoidal(2).table(consecutive(1000))
    # 710 is 113 turns but for 6e-5 radians.
    assert (single[710] - single[0]).abs().max() < 1e-4
    many = Sinusoidal(64).table(consecutive(1000))
    assert (many[710] - many[0]).abs().max() > 1


# Embeddings and their sums.


@pytest.mark.parametrize("n", [100, 10_000])
def test_the_sums_of_a_batch(n):
    """Printed from unrounded embeddings, so within a step of the second decimal."""
    x = torch.tensor(EXAMPLES["batch_embeddings_2dp"])
    expected = torch.tensor(EXAMPLES[f"batch_sum_n{n}_2dp"])
    got = Sinusoidal(4, base=n, dropout=0.1).eval()(x)
    assert x.shape == expected.shape == (3, 6, 4)
    assert (got - expected).abs().max() < 0.011


def test_all_sentences_share_the_encoding():
    x = torch.tensor(EXAMPLES["batch_embeddings_2dp"])
    added = Sinusoidal(4).table(consecutive(6))
    assert torch.allclose(Sinusoidal(4)(x) - x, added.expand_as(x), atol=1e-6)


def test_a_sentence_of_three_words():
    example = EXAMPLES["by_hand_d4_n10000"]
    x = torch.tensor([example["embeddings"]])
    assert x.shape == (1, len(example["sentence"]), 4)
    got = Sinusoidal(4)(x)[0]
    for position, row in example["values"].items():
        expected = x[0, int(position)] + torch.tensor(row)
        assert torch.allclose(got[int(position)], expected, atol=1e-4)


def test_ten_words_in_fourteen_dimensions():
    """Embedding + encoding = sum, and a word at two places becomes two vectors."""
    words = EXAMPLES["sentence_d14"].lower().split()
    assert len(words) == 10
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys(words))}
    torch.manual_seed(0)
    embedding = nn.Embedding(len(vocabulary), 14)
    x = embedding(torch.tensor([[vocabulary[word] for word in words]]))
    summed = Sinusoidal(14)(x)
    assert torch.equal(summed, x + Sinusoidal(14).table(consecutive(10)))
    first, second = (index for index, word in enumerate(words) if word == "the")
    assert torch.equal(x[0, first], x[0, second])
    assert not torch.equal(summed[0, first], summed[0, second])


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


def test_the_slides_convention_has_no_shift_map():
    assert not Sinusoidal(14, convention="per_dimension_one_based").keeps_shift


# The module that the documents build, the figures and the properties that they show.


class Module(nn.Module):
    """The documents' module: a buffer, dropout, a longest length."""

    def __init__(self, dim: int, dropout: float, max_len: int, n: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(n) / dim))
        pe = torch.zeros(1, max_len, dim)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.shape[1]])


def test_the_modules_defaults():
    defaults = EXAMPLES["module_defaults"]
    n, max_len, dropout = (defaults[key] for key in ("n", "max_len", "dropout"))
    assert inspect.signature(Sinusoidal).parameters["base"].default == n
    theirs = Module(16, dropout, max_len, n)
    ours = Sinusoidal(16, dropout=dropout, arithmetic="float32-log")
    x = torch.randn(2, max_len, 16)
    assert torch.equal(ours.eval()(x), theirs.eval()(x))
    # The elements that fall are others; what both of them keep is the same.
    got, want = ours.train()(x), theirs.train()(x)
    kept = (got != 0) & (want != 0)
    assert kept.double().mean().item() == pytest.approx((1 - dropout) ** 2, abs=0.01)
    torch.testing.assert_close(got[kept], want[kept])
    # Ours has no longest length; a learned one has, and takes this one.
    assert ours(torch.randn(1, max_len + 1, 16)).shape == (1, max_len + 1, 16)
    assert Learned(16, max_len).table(consecutive(max_len)).shape == (max_len, 16)


@pytest.mark.parametrize("figure", EXAMPLES["figures"], ids=lambda f: f"{f['L']}x{f['d']}")
def test_the_tables_of_the_figures(figure):
    """Values stay within −1 and 1, and every position has a vector of its own."""
    table = Sinusoidal(figure["d"], base=figure["n"]).table(consecutive(figure["L"]))
    assert table.shape == (figure["L"], figure["d"])
    assert table.abs().max() <= 1
    assert len(table.unique(dim=0)) == figure["L"]


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
