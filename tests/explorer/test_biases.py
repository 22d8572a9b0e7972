"""Section 12: biases and what the softmax leaves, against the library and torch."""

import json

import numpy as np
import pytest
import torch
from tests.explorer.conftest import numbers, product
from torch import nn

from posenc import KERPLE, ALiBi, T5Bias

STATES = [
    {**state, **more}
    for state in product(
        biasKind=("none", "alibi", "t5", "kerple", "window"), head=(0, 7), keys=(64, 300, 4096),
        buckets=("8", "32"),
    )
    for more in (
        {"kerpleP": 1, "kerpleA": 1, "window": 128, "heads": 8},
        {"kerpleP": 0.2, "kerpleA": 5, "window": 1, "heads": 12},
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def content(javascript) -> torch.Tensor:
    """The page's own scores of content."""
    found = javascript(["seen.contentScores(4096, state_defaults.CONTENT_SEED)"])
    return torch.tensor(found[0], dtype=torch.float64)


@pytest.fixture(scope="module")
def entries(javascript) -> dict:
    """The page's own numbers for T5's buckets."""
    asked = [(head, count) for head in (0, 7) for count in (8, 32)]
    found = javascript([f"seen.t5Entries({head}, {count})" for head, count in asked])
    return dict(zip(asked, found, strict=True))


def library_bias(state: dict, entries: dict) -> np.ndarray:
    distance = torch.arange(state["keys"])
    kind, head = state["biasKind"], state["head"]
    if kind == "alibi":
        found = ALiBi(state["heads"]).profile(distance, dtype=torch.float64)[head]
    elif kind == "kerple":
        kerple = KERPLE(1).double()
        nn.init.constant_(kerple.p, state["kerpleP"])
        nn.init.constant_(kerple.a, state["kerpleA"])
        found = kerple.profile(distance, dtype=torch.float64)[0]
    elif kind == "t5":
        count = int(state["buckets"])
        t5 = T5Bias(1, count, bidirectional=False).double()
        weight = torch.tensor(entries[head, count], dtype=torch.float64)[:, None]
        t5.load_state_dict({"weight": weight})
        found = t5.profile(distance, dtype=torch.float64)[0]
    else:
        hidden = distance >= (state["window"] if kind == "window" else state["keys"])
        found = torch.zeros(state["keys"], dtype=torch.float64).masked_fill(hidden, -torch.inf)
    return found.detach().numpy()


def weights(state: dict, content: torch.Tensor, entries: dict) -> tuple[np.ndarray, np.ndarray]:
    plain = content[: state["keys"]]
    both = plain + torch.from_numpy(library_bias(state, entries)), plain
    return tuple(scores.softmax(0).numpy() for scores in both)


def holding(w: np.ndarray, share: float) -> int:
    return int(np.argmax(np.cumsum(w) >= share)) + 1


def test_bias_score_and_weight_are_the_librarys(javascript, content, entries):
    states = [state for state in STATES if state["keys"] < 4096]
    asked = [
        "((s) => [s.bias.map((b) => (b === -Infinity ? -1e300 : b)), s.weights])"
        f"(state_facts.seenOf({json.dumps(state)}))"
        for state in states
    ]
    for state, (bias, found) in zip(states, javascript(asked), strict=True):
        wanted = np.nan_to_num(library_bias(state, entries), neginf=-1e300)
        np.testing.assert_allclose(bias, wanted, rtol=1e-7, atol=1e-7, err_msg=str(state))
        wanted, _ = weights(state, content, entries)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)


def test_what_is_said_of_the_weights(said, content, entries):
    for state, words in said("prose_seen.aboutSeen", STATES):
        now, plain = weights(state, content, entries)
        told = [int(x) for x in numbers(words) if x != 90 or "90 %" not in words]
        expected = [holding(now, 0.5), state["keys"], holding(now, 0.9)]
        if state["biasKind"] != "none":
            expected += [holding(plain, 0.5), holding(plain, 0.9)]
        assert [x for x in told if x != 90] == [x for x in expected if x != 90]
