"""Section 11: arcs, methods, drift and narrow positions, against the library's schedules."""

import itertools
import json
from fractions import Fraction
from math import floor, log, tau

import numpy as np
import pytest
import torch
from tests.explorer.conftest import numbers

from posenc import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.inspection.attention import rotary_scores

METHODS = ["none", "linear", "ntk", "yarn", "llama3"]
STATES = [
    {"dim": dim, "base": base, "factor": factor, "trained": trained, "method": method}
    for dim, base, factor, trained, method in itertools.product(
        (3, 4, 15, 128), (1, 16, 10_000), (1, 1.5, 8), (16, 2048), METHODS
    )
]


def refused(state: dict) -> bool:
    return state["base"] == 1 or state["dim"] < 4


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


def longer(state: dict) -> int:
    """The whole positions of the text to be read."""
    return floor(state["trained"] * Fraction(str(state["factor"])))


def kinds(state: dict, method: str) -> tuple[int, int, int]:
    """How many pairs met every angle, stay within what they met, and come to new angles."""
    target = longer(state)
    met, reached = state["trained"] * radians(state, "none"), target * radians(state, method)
    whole = met >= tau
    within = ~whole & (reached <= met * (1 + 1e-9))
    return int(whole.sum()), int(within.sum()), int((~whole & ~within).sum())


@pytest.mark.parametrize(("dim", "base", "trained"), [(128, 5e5, 8192), (64, 1e4, 2048)])
@pytest.mark.parametrize("factor", [1.0, 8.0])
def test_llama_3_is_the_librarys(javascript, dim, base, trained, factor):
    found = javascript([f"scaling.llama3({dim}, {base}, {factor}, {trained})"])[0]
    expected = Llama3(Geometric(dim, base), factor, trained_length=trained).radians()
    assert found == pytest.approx([float(omega) for omega in expected], rel=1e-12)


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


def test_what_is_said_of_arcs_and_near_tokens(said):
    for state, words in said("prose_long.aboutArcs", STATES):
        if refused(state):
            assert "choose" in words
            continue
        whole, within, fresh = kinds(state, state["method"])
        assert f" {whole} pair{'' if whole == 1 else 's'} met the whole circle." in words
        if state["factor"] == 1:
            assert "nothing is new" in words
            continue
        told = "1 pair comes" if fresh == 1 else f" {fresh} pairs come"
        assert f"{told} to angles never met" in words
        assert ("within the arc" in words) is (within > 0)
        assert within == 0 or f"and {within} stay" in words
    for state, words in said("prose_long.aboutNear", STATES):
        if refused(state):
            assert words == ""
            continue
        kept = radians(state, state["method"])[0] / radians(state, "none")[0]
        assert ("crowded" in words) is bool(kept < 1 - 1e-9)
        if kept < 1 - 1e-9:
            assert numbers(words)[0] == pytest.approx(kept, rel=1e-2)


def test_the_table_of_methods(javascript):
    states = [state for state in STATES if not refused(state) and state["method"] == "none"]
    asked = [
        f"{json.dumps(METHODS)}.map((m) => prose_long.kindsOf({json.dumps(state)}, m))"
        for state in states
    ]
    for state, found in zip(states, javascript(asked), strict=True):
        for method, counts in zip(METHODS, found, strict=True):
            assert tuple(counts.values()) == kinds(state, method), (state, method)


def test_linear_interpolation_meets_no_new_angle_at_any_factor(javascript):
    """As a slider gives them, with three digits: s·L₀ is seldom whole."""
    states = [
        {"dim": 64, "base": 1e4, "trained": trained, "factor": tenths / 20, "method": "linear"}
        for trained, tenths in itertools.product((16, 100, 2048, 131_071), range(21, 100))
    ]
    asked = [f"scaling.targetLength({json.dumps(state)})" for state in states]
    assert javascript(asked) == [longer(state) for state in states]
    asked = [f"prose_long.kindsOf({json.dumps(state)}, 'linear')" for state in states]
    assert not any(counts["fresh"] for counts in javascript(asked))


def test_what_is_said_of_the_drift(said, javascript):
    """The range of the drawn distances lies within that of all, and is right at those drawn."""
    drawn = {}
    for state, words in said("prose_long.aboutDrift", STATES):
        if refused(state) or state["factor"] == 1:
            assert "hoose" in words
            continue
        target = longer(state)
        if target not in drawn:
            drawn[target] = np.array(javascript([f"prose_long.driftDistances({target})"])[0])
        far = drawn[target][drawn[target] >= state["trained"]]
        assert far.max() == target
        expected = []
        for method in ("none", state["method"])[: 1 + (state["method"] != "none")]:
            factor = schedule(state, method).attention_factor
            score = factor**2 * np.cos(far[:, None] * radians(state, method)).mean(1)
            expected += [score.min(), score.max()]
        told = [x for part in words.split("between")[1:] for x in numbers(part)[:2]]
        assert told == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_drift_is_what_rotary_attention_scores(javascript, method):
    """Of ones that meet themselves, over the pairs: YaRN's attention factor is in both of them."""
    state = {"dim": 64, "base": 10_000, "factor": 4, "trained": 64, "method": method}
    asked = f"prose_long.scoresOf({json.dumps(state)}, {json.dumps(method)})"
    found = javascript([f"Array.from({{ length: 256 }}, (_, d) => {asked}(d))"])[0]
    ones = torch.ones(64, dtype=torch.float64)
    expected = rotary_scores(Rotary(schedule(state, method)), ones, ones, 256) / 64
    assert found == pytest.approx(expected.tolist(), abs=1e-12)
    whole = (0.1 * log(4) + 1) ** 2 if method == "yarn" else 1.0
    assert found[0] == pytest.approx(whole, rel=1e-14)


def test_what_is_said_of_narrow_positions(said):
    for state, words in said("prose_long.aboutPrecision", STATES):
        if refused(state):
            continue
        last = longer(state) - 1
        held = int(torch.tensor(last).to(torch.bfloat16))
        assert ("stays what it is" in words) is (held == last)
        assert held == last or f"becomes {held}" in words.replace("\u2009", "")
        omegas = radians(state, state["method"])
        single = np.float32(last) * omegas.astype(np.float32)
        worst = np.abs(single.astype(np.float64) - last * omegas).max()
        after = words.split("float32 it is off by")[1]
        if "10" not in after and "nothing" not in after:
            assert numbers(after)[0] == pytest.approx(worst, rel=1e-2)
        rounded = abs(held - last) * omegas.max()
        before = words.split("off by")[1]
        assert ("nothing" in before) is bool(rounded == 0)
        if rounded:
            assert numbers(before)[0] == pytest.approx(rounded, rel=1e-2)


def has_ramp(dim: int, base: float, trained: float) -> bool:
    try:
        YaRN(Geometric(dim, base), 4.0, trained)
    except ValueError:
        return False
    return True


def test_methods_are_refused_where_yarn_has_no_ramp(said):
    states = [
        {"dim": dim, "base": base, "trained": trained, "factor": 4}
        for dim, base, trained in itertools.product((4, 128, 512), (1.5, 10, 16), (2048, 131_072))
    ]
    ramps = [has_ramp(s["dim"], float(s["base"]), s["trained"]) for s in states]
    assert {True, False} == set(ramps)
    for function in ("prose_long.aboutArcs", "prose_relatives.aboutScaling"):
        for ramp, (state, words) in zip(ramps, said(function, states), strict=True):
            assert ("YaRN has no ramp" in words) is not ramp, state
    for ramp, (state, words) in zip(
        ramps, said("prose_relatives.aboutLengths", states), strict=True
    ):
        longer = has_ramp(state["dim"], float(state["base"]), 4 * state["trained"])
        assert not ramp or ("would give no ramp" in words) is not longer, state


@pytest.mark.slow("the page in a browser")
def test_methods_are_chosen_by_buttons_and_keys(opened):
    found = opened("factor=8")
    found.to("long")
    assert "Unchanged" in found.text("arcs")
    found.page.get_by_role("button", name="Llama 3").click()
    assert "With Llama 3" in found.text("arcs")
    found.page.locator('[data-name="arcs"]').focus()
    found.page.keyboard.press("ArrowLeft")
    assert "With YaRN" in found.text("arcs")
    found.page.fill("#long-trained", "4096")
    assert "Trained on 4096 positions" in found.text("arcs")
    again = opened("factor=8&trained=4096&method=yarn")
    assert again.text("arcs") == found.text("arcs")
    assert found.complaints == []
