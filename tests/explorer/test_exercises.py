"""Section 15: every question's answer from the library, in many states; and what is said of it."""

import json
from math import degrees, tau

import pytest
import torch
from tests.explorer.conftest import product

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


def test_every_answer_is_the_librarys_and_is_judged(javascript):
    code = (
        "((states) => states.map((asked) => {"
        " const s = state_limits.settled({ ...state_defaults.DEFAULTS, ...asked });"
        " return prose_exercises.EXERCISES.map((e) => { const right = e.answer(s);"
        " return [e.ask(s), right, prose_exercises.judged(e, s, String(right)).right,"
        " prose_exercises.judged(e, s, String(right + 2 * e.within(right) + 1)).right]; }); }))"
        f"({json.dumps(STATES)})"
    )
    for state, rows in zip(STATES, javascript([code])[0], strict=True):
        for (question, answer, *judged), wanted in zip(rows, answers(state), strict=True):
            assert answer == pytest.approx(wanted, rel=1e-9, abs=1e-9), (state, question)
            assert judged == [True, False], question
