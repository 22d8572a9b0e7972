"""Section 11: arcs, methods, drift and narrow positions, against the library's schedules."""

import json
from fractions import Fraction
from math import floor, log, tau

import numpy as np
import pytest
import torch
from tests.explorer.conftest import product

from posenc import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.inspection.attention import rotary_scores

METHODS = ["none", "linear", "ntk", "yarn", "llama3"]
STATES = product(dim=(3, 4, 15, 128), base=(1, 16, 10_000), factor=(1, 1.5, 8), trained=(16, 2048))


def schedule(state: dict, method: str):
    plain = Geometric(state["dim"] // 2 * 2, float(state["base"]))
    s, trained = state["factor"], state["trained"]
    return {
        "none": plain,
        "linear": Linear(plain, s),
        "ntk": NTK(plain, s),
        "yarn": YaRN(plain, s, trained),
        "llama3": Llama3(plain, s, trained_length=trained),
    }[method]


def radians(state: dict, method: str) -> np.ndarray:
    return np.array([float(omega) for omega in schedule(state, method).radians()])


def kinds(state: dict, method: str) -> tuple[int, int, int]:
    """How many pairs met every angle, stay within what they met, and come to new angles."""
    target = floor(state["trained"] * Fraction(state["factor"]))
    met, reached = state["trained"] * radians(state, "none"), target * radians(state, method)
    whole = met >= tau
    within = ~whole & (reached <= met * (1 + 1e-9))
    return int(whole.sum()), int(within.sum()), int((~whole & ~within).sum())


def test_every_angle_of_an_arc_is_met_and_no_other(javascript):
    """By walking: the angles of all positions, in bins of a turn."""
    for plain, changed, trained, target in (
        (0.5, 0.5, 64, 256), (0.01, 0.01, 100, 400), (0.01, 0.0025, 100, 400),
        (0.05, 0.02, 100, 400), (0.001, 0.001, 100, 100),
    ):  # fmt: skip
        found = javascript([f"arcs.arcs({plain}, {changed}, {trained}, {target})"])[0]
        fine = np.linspace(0, 1, 200_001)
        met, later = (np.minimum(fine * x, tau) for x in (plain * trained, changed * target))
        assert found["before"] == pytest.approx(met.max())
        fresh = max(later.max() - met.max(), 0)
        assert found["fresh"] == pytest.approx(fresh, abs=1e-9)
        assert (found["kind"] == "new") is bool(fresh > 1e-9)
        assert (found["kind"] == "whole") is (plain * trained >= tau)


def test_the_table_of_methods(javascript):
    states = [state for state in STATES if state["base"] > 1 and state["dim"] >= 4]
    asked = [
        f"{json.dumps(METHODS)}.map((m) => prose_long.kindsOf({json.dumps(state)}, m))"
        for state in states
    ]
    for state, found in zip(states, javascript(asked), strict=True):
        for method, counts in zip(METHODS, found, strict=True):
            assert tuple(counts.values()) == kinds(state, method), (state, method)


@pytest.mark.parametrize("method", METHODS)
def test_the_drift_is_what_rotary_attention_scores(javascript, method):
    """Of ones that meet themselves, over the pairs: YaRN's attention factor is in both of them."""
    state = {"dim": 64, "base": 10_000, "factor": 4, "trained": 64}
    asked = f"prose_long.scoresOf({json.dumps(state)}, {json.dumps(method)})"
    found = javascript([f"Array.from({{ length: 256 }}, (_, d) => {asked}(d))"])[0]
    ones = torch.ones(64, dtype=torch.float64)
    expected = rotary_scores(Rotary(schedule(state, method)), ones, ones, 256) / 64
    assert found == pytest.approx(expected.tolist(), abs=1e-12)
    whole = (0.1 * log(4) + 1) ** 2 if method == "yarn" else 1.0
    assert found[0] == pytest.approx(whole, rel=1e-14)
