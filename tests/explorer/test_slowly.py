"""Section 10: the pairs of a rotary head, their sum and every sentence about them."""

import itertools
import json

import pytest
import torch
from tests.explorer.conftest import numbers

from posenc import Rotary
from posenc.frequencies import Geometric

STATES = [
    {
        **{"base": base, "position": position, "offset": offset, "pairing": pairing},
        **{"turnedPairs": turned, "rotaryFault": fault, "rotaryPair": pair},
    }
    for base, position, offset, pairing, turned, fault, pair in itertools.product(
        (1, 16, 10_000), (0, 12), (-12, 0, 9), ("half", "interleaved"), (1, 3, 8),
        ("none", "queries"), (0, 3, 7),
    )
][::5]  # fmt: skip


@pytest.fixture(scope="module")
def vectors(javascript) -> tuple[torch.Tensor, torch.Tensor]:
    """The page's own query and key."""
    found = javascript(["state_facts.SLOW_QUERY", "state_facts.SLOW_KEY"])
    query, key = (torch.tensor(each, dtype=torch.float64).view(1, 1, 16) for each in found)
    return query, key


def library_score(vectors, state: dict, m: int, n: int) -> float:
    """The score of the library's rotary encoding; with the fault the key stays as it is."""
    schedule = Geometric(2 * state["turnedPairs"], base=float(state["base"]))
    rotary = Rotary(schedule, head_dim=16, pairing=state["pairing"])

    def turned(x: torch.Tensor, place: int) -> torch.Tensor:
        at = rotary.table(torch.tensor([place]), dtype=torch.float64)
        return rotary.encode_queries(x, at).flatten()

    query, key = vectors
    placed = key.flatten() if state["rotaryFault"] == "queries" else turned(key, n)
    return (turned(query, m) @ placed).item()


def test_the_sum_over_the_pairs_is_the_librarys_score(javascript, vectors):
    """Whole heads and partial ones, in halves and interleaved, turned rightly and not."""
    places = [(0, 0), (9, 0), (0, 9), (-5, 17), (4095, 3)]
    for state in STATES[::3]:
        asked = (
            f"((pairs) => {json.dumps(places)}.map(([m, n]) => rotary_pairs.score(pairs, m, n, "
            f"{json.dumps(state['rotaryFault'] == 'queries')})))"
            f"(state_facts.slowPairsOf({json.dumps(state)}))"
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
        assert (score >= low - 1e-12).all()
        assert (score <= high + 1e-12).all()
        if first in (1, 2, 3):
            wide = (high - low)[0]
            assert (high - score).min() < 0.05 * wide
            assert (score - low).min() < 0.05 * wide


def test_what_is_said_of_a_pair(said, vectors):
    query, key = (each.flatten() for each in vectors)
    for state, words in said("prose_slowly.aboutPair", STATES):
        i, turned = state["rotaryPair"], state["turnedPairs"]
        half = state["pairing"] == "half"
        a, b = (i, i + turned) if half and i < turned else (2 * i, 2 * i + 1)
        assert f"Pair {i} (channels {a} and {b})" in words
        q, k = torch.complex(query[a], query[b]), torch.complex(key[a], key[b])
        omega = float(state["base"]) ** (-i / turned) if i < turned else 0.0
        fault = state["rotaryFault"] == "queries"
        steps = state["offset"] + (state["position"] if fault else 0)
        turn = torch.polar(
            torch.ones((), dtype=torch.float64), torch.tensor(omega * steps).double()
        )
        added = (q * k.conj() * turn).real.item()
        assert numbers(words)[-1] == pytest.approx(added, abs=6e-5), (state, words)
        assert ("left alone" in words) is (i >= turned)
        assert "+ −" not in words
