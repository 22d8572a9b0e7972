"""Every sentence that speaks of the state, over a grid of states: what it claims, holds.

The page's words are pure functions of the state (``page/prose``); here each claim is worked out
again from the library or by brute force, and must agree in every state of the grid.
"""

import json
from functools import cache
from math import tau

import torch
from tests.explorer.conftest import numbers, product

from posenc import Rotary, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS

DIMS = [2, 3, 4, 14, 15, 128]
BASES = [1, 1.5, 16, 10_000, 10_000_000]
LENGTHS = [2, 13, 50, 300]


@cache
def exists(convention: str, dim: int) -> bool:
    try:
        Sinusoidal(dim, convention=convention)
    except ValueError:
        return False
    return True


def grid(**more: list) -> list[dict]:
    """The states of all conventions, widths, bases and lengths, and of what else is given."""
    fields = {"convention": CONVENTIONS, "dim": DIMS, "base": BASES, "length": LENGTHS} | more
    return [s for s in product(**fields) if exists(s["convention"], s["dim"])]


@cache
def encoding_of(convention: str, dim: int, base: float) -> Sinusoidal:
    return Sinusoidal(dim, float(base), convention)


@cache
def frequencies_of(convention: str, dim: int, base: float) -> list[float]:
    channels = (CONVENTIONS[convention].channel(j, dim, float(base)) for j in range(dim))
    return [float(channel.frequency) for channel in channels]


@cache
def rows(convention: str, dim: int, base: float, length: int) -> torch.Tensor:
    return encoding_of(convention, dim, base).table(torch.arange(length), dtype=torch.float64)


def encoding(state: dict) -> Sinusoidal:
    return encoding_of(state["convention"], state["dim"], state["base"])


def frequencies(state: dict) -> list[float]:
    return frequencies_of(state["convention"], state["dim"], state["base"])


def table(state: dict) -> torch.Tensor:
    return rows(state["convention"], state["dim"], state["base"], state["length"])


def test_positions_and_rows_in_bfloat16(said):
    states = grid(position=[0, 9, 260], length=[13, 300])
    for state, words in said("prose_matrix.aboutBfloat16", states):
        held = torch.arange(state["length"]).to(torch.bfloat16)
        kept, here = len(held.unique()), int(held[state["position"]])
        if here == state["position"]:
            assert f"your position {here} still fits" in words
        else:
            assert f"your position {state['position']} becomes {here}," in words
        once = len(table(state).to(torch.bfloat16).unique(dim=0))
        whole = state["length"]
        assert ("all" in words.split("round the")[0]) is (kept == whole)
        if kept != whole:
            assert f"of {whole} positions {kept} stay apart" in words
        if once == whole:
            assert words.endswith(f"all {whole} positions keep a row of their own.")
        else:
            assert f"{once} of {whole} positions keep a row" in words


def test_how_many_dimensions_turn(said):
    for state, words in said("prose_curves.aboutWavelengths", grid()):
        found = [tau / frequency for frequency in frequencies(state) if frequency]
        full = sum(w <= state["length"] for w in found)
        claimed = (
            0 if words.startswith("None") else len(found) if words.startswith("All")
            else int(numbers(words)[0])
        )  # fmt: skip
        assert claimed == full


def test_what_dot_products_depend_on(said):
    states = grid(dim=[2, 3, 14, 15], length=[2, 13, 50], position=[0, 12])
    for state, words in said("prose_similarity.aboutDiagonals", states):
        products = table(state) @ table(state).mT
        spread = max(
            (products.diagonal(k).max() - products.diagonal(k).min()).item()
            for k in range(state["length"])
        )
        if "constant along its diagonals and one curve" in words:
            assert spread < 1e-7
        else:
            assert f"that of p = {state['position']} alone" in words
            # Perhaps too little to be seen here; but the library promises no more either.
            assert not encoding(state).keeps_norm
            assert len({w for w in frequencies(state) if w}) > 1 or state["dim"] % 2


def test_whether_a_matrix_moves_every_position(said):
    for state, words in said("prose_shift.aboutMap", grid(length=[50])):
        unpaired = CONVENTIONS[state["convention"]].odd == "unpaired"
        assert ("one matrix M, the same at every position" in words) is (not unpaired)
        assert ("no matrix moves every position" in words) is (unpaired and state["base"] != 1)
        assert ("by accident" in words) is (unpaired and state["base"] == 1)
        odd_sine = state["convention"] == "paper" and state["dim"] % 2 == 1
        assert ("The last sine, which has no cosine" in words) is odd_sine
        if unpaired and state["base"] == 1:  # it exists: all rows are sin p and cos p
            assert len({*frequencies(state)}) == 1
        assert encoding(state).keeps_shift is (not unpaired and not odd_sine)


SENTENCES = ["word", "your cat is a lovely cat", "Cat cat CAT dog", "a b c d e f g h"]


def test_what_is_said_of_a_sentence(said):
    states = [{"sentence": text, "base": base} for text in SENTENCES for base in BASES]
    for state, words in said("prose_sentence.aboutStill", states):
        count = len(state["sentence"].split())
        values = rows("paper", 14, state["base"], count)
        still = int(((values.amax(0) - values.amin(0)) < 0.1).sum())
        if count == 1:
            assert words.startswith("With one token")
        elif still == 0:
            assert "none of the 14 columns" in words
        else:
            assert f"{still} of the 14 columns change" in words


def test_rotary_scores_are_the_librarys(said, javascript):
    state = {"position": 20, "offset": 9, "moved": 5, "base": 10_000, "pairing": "half"}
    stages = javascript([f"state_facts.rotaryStagesOf({json.dumps(state)})"])[0]
    rotary = Rotary(8)
    x = {side: torch.tensor(stages[0][side], dtype=torch.float64).view(1, 1, 8) for side in "qk"}
    for stage, shift in ((stages[1], 0), (stages[2], 5)):
        for side, place in (("q", 29 + shift), ("k", 20 + shift)):
            at = rotary.table(torch.tensor([place]), dtype=torch.float64)
            expected = rotary.encode_queries(x[side], at).flatten()
            found = torch.tensor(stage[side], dtype=torch.float64)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        assert stage["m"] - stage["n"] == state["offset"]
