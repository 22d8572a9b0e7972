"""Section 10: the pairs of a rotary head, and their sum."""

import json

import pytest
import torch
from tests.explorer.conftest import numbers, product

from posenc import Rotary
from posenc.frequencies import Geometric

STATES = product(
    base=(1, 16, 10_000), position=(0, 12), offset=(-12, 0, 9), pairing=("half", "interleaved"),
    turnedPairs=(1, 3, 8), rotaryFault=("none", "queries"), rotaryPair=(0, 3, 7),
)[::5]  # fmt: skip


@pytest.fixture(scope="module")
def vectors(javascript) -> torch.Tensor:
    """The page's own query and key, [2, 16]."""
    found = javascript(["state_facts.SLOW_QUERY", "state_facts.SLOW_KEY"])
    return torch.tensor(found, dtype=torch.float64)


def library_score(vectors: torch.Tensor, state: dict, m: int, n: int) -> float:
    """The score of the library's rotary encoding; with the fault the key stays as it is."""
    schedule = Geometric(2 * state["turnedPairs"], base=float(state["base"]))
    rotary = Rotary(schedule, head_dim=16, pairing=state["pairing"])
    table = rotary.table([m, n], dtype=torch.float64)
    query, key = rotary.encode_queries(vectors[None], table)[0]
    return (query @ (vectors[1] if state["rotaryFault"] == "queries" else key)).item()


def test_the_sum_over_the_pairs_is_the_librarys_score(javascript, vectors):
    """Whole heads and partial ones, in halves and interleaved, turned rightly and not."""
    places = [(0, 0), (9, 0), (0, 9), (-5, 17), (4095, 3)]
    for state in STATES[::3]:
        fault = json.dumps(state["rotaryFault"] == "queries")
        asked = (
            f"((pairs) => {json.dumps(places)}.map(([m, n]) => rotary_pairs.score(pairs, m, n, "
            f"{fault})))(state_facts.slowPairsOf({json.dumps(state)}))"
        )
        wanted = [library_score(vectors, state, m, n) for m, n in places]
        assert javascript([asked])[0] == pytest.approx(wanted, abs=1e-11)


def test_the_score_never_leaves_its_band(javascript):
    """And touches both sides of it somewhere, so that no narrower band would do everywhere."""
    asked = (
        "((pairs) => Array.from({ length: 8 }, (_, first) => "
        "Array.from({ length: 4001 }, (_, d) => [rotary_pairs.score(pairs, d - 2000, 0, false), "
        "...rotary_pairs.envelope(pairs, first, d - 2000, 0, false)])))"
        "(state_facts.slowPairsOf({ turnedPairs: 8, base: 10000, pairing: 'half' }))"
    )
    for first, rows in enumerate(javascript([asked])[0]):
        score, low, high = torch.tensor(rows, dtype=torch.float64).T
        nearest = torch.stack(((high - score).min(), (score - low).min()))
        assert (nearest >= -1e-12).all()
        assert first not in (1, 2, 3) or (nearest < 0.05 * (high - low)[0]).all()


def test_what_is_said_of_a_pair(said, vectors):
    query, key = vectors
    for state, words in said("prose_slowly.aboutPair", STATES):
        i, turned = state["rotaryPair"], state["turnedPairs"]
        a, b = (i, i + turned) if state["pairing"] == "half" and i < turned else (2 * i, 2 * i + 1)
        assert f"Pair {i} (channels {a} and {b})" in words
        omega = float(state["base"]) ** (-i / turned) if i < turned else 0.0
        fault = state["rotaryFault"] == "queries"
        angle = omega * (state["offset"] + (state["position"] if fault else 0))
        q, k = torch.complex(query[a], query[b]), torch.complex(key[a], key[b])
        added = (q * k.conj() * torch.tensor(1j * angle).exp()).real.item()
        assert numbers(words)[-1] == pytest.approx(added, abs=6e-5), (state, words)
        assert ("left alone" in words) is (i >= turned)
