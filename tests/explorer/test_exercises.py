"""Section 15: every question's answer from the library, in many states; and what is said of it."""

import itertools
import json
from math import degrees, tau

import pytest
import torch
from tests.explorer.conftest import numbers

from posenc import ALiBi, Sinusoidal
from posenc.frequencies import Geometric
from posenc.numerics.buckets import t5_buckets

STATES = [
    {
        **{"base": base, "dim": dim, "length": 300, "position": position, "offset": offset},
        **{"heads": heads, "trained": trained, "pads": pads, "gridSize": size},
    }
    for base, dim, position, offset, (heads, trained, pads, size) in itertools.product(
        (1, 16, 10_000), (2, 3, 15, 128), (0, 10, 260), (-200, 0, 7, 45),
        ((1, 16, 0, 4), (8, 2048, 2, 14), (12, 131_071, 6, 24)),
    )
]  # fmt: skip


def answers(state: dict) -> list[float]:
    """What each exercise asks for, from the library."""
    dim, base = state["dim"], float(state["base"])
    encoding = Sinusoidal(dim, base)
    pair = 1 if dim >= 4 else 0
    omega = base ** -float(encoding.convention.channel(2 * pair, dim).exponent)
    place = torch.tensor([state["position"]])
    even = Sinusoidal(2 * -(-dim // 2), base).table(place, dtype=torch.float64)[0]
    bucket = t5_buckets(torch.tensor(abs(state["offset"])), 32, 128, bidirectional=False)
    frequencies = Geometric(dim // 2 * 2, base).radians()
    return [
        tau / omega,
        encoding.table(place, dtype=torch.float64)[0, 0].item(),
        degrees(state["offset"]) % 360,
        (even @ even).item(),
        ALiBi(state["heads"]).slopes[0],
        bucket.item(),
        sum(state["trained"] * float(each) >= tau for each in frequencies),
        torch.tensor(state["trained"] + 1).to(torch.bfloat16).item(),
        7,
        state["gridSize"],
    ]


@pytest.fixture(scope="module")
def found(javascript) -> list:
    """[state, [[question, answer, tolerance, the answer shown, judged right, judged wrong], …]]."""
    code = (
        "((states) => states.map((asked) => {"
        " const s = state_limits.settled({ ...state_defaults.DEFAULTS, ...asked });"
        " return prose_exercises.EXERCISES.map((e) => { const right = e.answer(s);"
        " return [e.ask(s), right, e.within(right), prose_exercises.shown(e, s),"
        " prose_exercises.judged(e, s, String(right)),"
        " prose_exercises.judged(e, s, String(right + 2 * e.within(right) + 1))]; }); }))"
        f"({json.dumps(STATES)})"
    )
    return list(zip(STATES, javascript([code])[0], strict=True))


def test_every_answer_is_the_librarys(found):
    for state, rows in found:
        for (question, answer, *_), wanted in zip(rows, answers(state), strict=True):
            assert answer == pytest.approx(wanted, rel=1e-9, abs=1e-9), (state, question)


def test_right_and_wrong_answers_are_told_apart(found):
    for _, rows in found:
        for question, answer, within, shown, right, wrong in rows:
            for bad in ("NaN", "undefined", "null", " 1 positions", " 1 pads", " 1 heads"):
                assert bad not in question + shown
            assert right["right"], question
            assert right["words"].startswith("Right: ")
            assert not wrong["right"], question
            assert wrong["words"].startswith("Not yet. ")
            # What the page shows as the answer, it must take as one.
            told = shown.split(". ")[0]
            if "×" not in told:
                assert numbers(told)[0] == pytest.approx(answer, abs=max(within, 6e-5)), question


def test_answers_are_read_as_people_write_them(javascript):
    meant = {
        **{"−0.54": [-0.54], "-0,54": [-0.54], " 10 000 ": [10000], "": [], "many": []},
        **{"1e3": [1000], "−1e−3": [-0.001], "2,048": [2.048, 2048], "−1,234,567.5": [-1234567.5]},
    }
    assert javascript([f"{json.dumps([*meant])}.map(prose_exercises.numbersIn)"]) == [
        [*meant.values()]
    ]
    asked = "prose_exercises.judged(prose_exercises.EXERCISES[7], { trained: 2048 }, '2,048')"
    assert javascript([asked])[0] == {"right": True, "words": "Right: 2048."}


@pytest.mark.slow("a page in a browser for each")
def test_an_exercise_is_solved_by_keyboard(opened):
    opened_page = opened("position=1")
    opened_page.to("exercises")
    page = opened_page.page
    said = page.locator("#exercise-1-said")
    page.fill("#exercise-1", "0.5")
    page.keyboard.press("Enter")
    assert said.inner_text().startswith("Not yet.")
    page.fill("#exercise-1", "0,84")
    assert said.inner_text() == ""  # another answer: nothing has been said of it yet
    page.keyboard.press("Enter")
    assert said.inner_text() == "Right: 0.8415."
    assert opened_page.text("solved") == "1 of 10 solved."
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert said.inner_text().startswith("0.8415. ")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # where it is taught
    assert page.evaluate("() => document.activeElement.id") == "matrix"
    assert "position=1" in page.evaluate("() => location.hash")
    assert said.inner_text().startswith("0.8415. ")
    page.evaluate("() => { location.hash = '#position=2' }")
    page.wait_for_function("() => document.querySelector('#exercise-1').value === ''")
    opened_page.settle()
    assert said.inner_text() == ""
    assert opened_page.text("solved") == "0 of 10 solved."
