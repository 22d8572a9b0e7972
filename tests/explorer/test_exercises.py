"""Section 15: every question's answer from the library, in many states; and what is said of it."""

import json
from math import degrees, tau

import pytest
import torch
from tests.explorer.conftest import numbers, product

from posenc import ALiBi, Sinusoidal
from posenc.frequencies import Geometric
from posenc.numerics.buckets import t5_buckets

STATES = [
    {**state, **more, "length": 300}
    for state in product(
        base=(1, 16, 10_000), dim=(2, 3, 15, 128), position=(0, 10, 260), offset=(-200, 0, 7, 45)
    )
    for more in (
        {"heads": 1, "trained": 16, "pads": 0, "gridSize": 4},
        {"heads": 8, "trained": 2048, "pads": 2, "gridSize": 14},
        {"heads": 12, "trained": 131_071, "pads": 6, "gridSize": 24},
    )
]


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
