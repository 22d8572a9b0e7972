"""Every sentence that speaks of the state, over a grid of states: what it claims, holds.

The page's words are pure functions of the state (``page/prose``); here each claim is worked out
again from the library or by brute force, and must agree in every state of the grid.
"""

from functools import cache

import torch
from tests.explorer.conftest import product

from posenc import Sinusoidal
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
