"""Section 10: the pairs of a rotary head, their sum and every sentence about them."""

import itertools
import json
import re
from math import cos

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


def printed(text: str) -> float:
    """A number as the page writes it, powers of ten too."""
    mantissa, *power = text.replace("−", "-").replace("\u2009", "").split("\u00a0×\u00a010")
    raised = power[0].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) if power else "0"
    return float(mantissa) * 10.0 ** int(raised)


FAULT = {"rotaryFault": "queries"}


def test_the_arithmetic_of_a_pair_gives_the_number_behind_it(said):
    far = [
        {"length": 4096, "position": position, "offset": offset, "base": base, **more}
        for position, offset in ((0, 4000), (4000, -3907), (4000, 90)) for base in (2, 10_000, 1e7)
        for more in ({"rotaryPair": 1}, {"rotaryPair": 7}, {"rotaryPair": 3, **FAULT})
    ]  # fmt: skip
    for state, words in said("prose_slowly.aboutPair", STATES + far):
        if "left alone" in words:
            continue
        size, between, sign, steps, omega, adds = re.search(
            r"between: (\S+) × cos\((\S+) ([+−]) (\d+) × (.+)\) = (.+)\.$",
            words.replace(" (the query's place)", ""),
        ).groups()
        turned = printed(steps) * printed(omega) * (-1 if sign == "−" else 1)
        found = printed(size) * cos(printed(between) + turned)
        assert f"{found:.4f}".replace("-0.0000", "0.0000") == f"{printed(adds):.4f}", (state, words)


def test_what_is_said_of_the_sum(said, vectors):
    for state, words in said("prose_slowly.aboutSum", STATES):
        n, m = state["position"], state["position"] + state["offset"]
        wanted = library_score(vectors, state, m, n)
        assert numbers(words.split("score of")[1])[0] == pytest.approx(wanted, abs=6e-5)
        assert words.startswith(f"Query at m = {str(m).replace('-', '−')}, key at n = {n}:")


def test_what_is_said_of_moving_both(said, vectors):
    for state, words in said("prose_slowly.aboutKept", STATES):
        fault = state["rotaryFault"] == "queries"
        assert ("The distance alone decides" in words) is not fault
        spread = numbers(words.split("changes by")[1])[0]
        if fault:
            n, m = state["position"], state["position"] + state["offset"]
            scores = [library_score(vectors, state, m + t, n + t) for t in range(0, 65, 8)]
            assert spread >= max(scores) - min(scores) - 1e-4 > 0.5
        else:
            assert "10⁻" in words or "changes by 0." in words


def test_what_is_said_of_the_band_and_of_the_speeds(said, vectors):
    for state, words in said("prose_slowly.aboutEnvelope", STATES):
        n, m = state["position"], state["position"] + state["offset"]
        score = library_score(vectors, state, m, n)
        faster = min(state["rotaryPair"], state["turnedPairs"])
        if not faster:
            assert numbers(words.split("itself,")[1])[0] == pytest.approx(score, abs=6e-5)
            continue
        assert f"the {faster} other pair" in words
        turns = state["rotaryPair"] < state["turnedPairs"]
        assert ("sum of the pairs that stand still" in words) is not turns
        low, high = numbers(words.split("between")[1])
        assert low - 1e-4 <= score <= high + 1e-4
    for state, words in said("prose_slowly.aboutTremble", STATES):
        alike = state["base"] == 1 or state["turnedPairs"] == 1
        assert ("one cosine" in words) is alike
        assert ("still pairs" in words) is (alike and state["turnedPairs"] < 8)
        assert ("One pair turns" in words) is (state["turnedPairs"] == 1)
    near = [{"base": base, "turnedPairs": 8} for base in (1.01, 2, 2.5, 16, 10_000)]
    for state, words in said("prose_slowly.aboutTremble", near):
        assert ("slow ones carry it far" in words) is (state["base"] ** (7 / 8) > 2)
        assert ("none carries the score far" in words) is (state["base"] ** (7 / 8) < 2)


def test_what_is_said_of_partial_heads_and_of_both_pairings(said, vectors):
    query, key = (each.flatten() for each in vectors)
    for state, words in said("prose_slowly.aboutPartial", STATES):
        turned = state["turnedPairs"]
        assert words.startswith("All 8 pairs turn") is (turned == 8)
        if turned < 8:
            still = (query[2 * turned :] @ key[2 * turned :]).item()
            assert words.startswith(f"{8 - turned} of 8 pairs stand still")
            assert numbers(words.split("add ")[1])[0] == pytest.approx(still, abs=6e-5)
    for state, words in said("prose_slowly.aboutBothPairings", STATES):
        n, m = state["position"], state["position"] + state["offset"]
        both = [
            library_score(vectors, state | {"pairing": pairing}, m, n)
            for pairing in ("half", "interleaved")
        ]
        assert numbers(words)[:2] == pytest.approx(both, abs=6e-5)
        assert ("the two agree" in words) is (abs(both[0] - both[1]) < 1e-9)


@pytest.mark.slow("the page in a browser")
def test_tokens_are_moved_and_pairs_chosen_by_pointer_and_keys(opened):
    found = opened("position=4&offset=3")
    found.to("slowly")
    page = found.page
    page.get_by_role("button", name="Query on").click()
    assert "Query at m = 8, key at n = 4" in found.text("sum")
    page.get_by_role("button", name="Key on").click()
    assert "Query at m = 8, key at n = 5" in found.text("sum")
    for _ in range(7):
        page.get_by_role("button", name="Key back").click()
    assert "Query at m = 8, key at n = 0" in found.text("sum")
    page.locator('[data-name="rotary-pairs"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert found.text("pair").startswith("Pair 4 ")
    assert "Query at m = 7" in found.text("sum")
    box = page.locator('[data-name="rotary-pairs"]').bounding_box()
    page.mouse.click(box["x"] + box["width"] / 16, box["y"] + 50)
    assert found.text("pair").startswith("Pair 0 ")
    page.get_by_role("button", name="queries alone").click()
    assert "nothing of the key" in found.text("kept")
    assert found.complaints == []
