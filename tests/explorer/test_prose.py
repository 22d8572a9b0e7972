"""Every sentence that speaks of the state, over a grid of states: what it claims, holds.

The page's words are pure functions of the state (``page/prose``); here each claim is worked out
again from the library or by brute force, and must agree in every state of the grid.
"""

import itertools
import json
import re
from functools import cache
from math import isclose, tau

import pytest
import torch
from tests.explorer.conftest import numbers

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import Geometric, YaRN
from posenc.inspection.similarity import closest_pair
from posenc.numerics.buckets import t5_buckets

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
    fields = {"convention": list(CONVENTIONS), "dim": DIMS, "base": BASES, "length": LENGTHS}
    fields |= more
    states = [
        dict(zip(fields, values, strict=True)) for values in itertools.product(*fields.values())
    ]
    return [state for state in states if exists(state["convention"], state["dim"])]


@cache
def encoding_of(convention: str, dim: int, base: float) -> Sinusoidal:
    return Sinusoidal(dim, float(base), convention)


def encoding(state: dict) -> Sinusoidal:
    return encoding_of(state["convention"], state["dim"], state["base"])


@cache
def channels_of(convention: str, dim: int, base: float) -> list[tuple[str, float]]:
    waveform = CONVENTIONS[convention].sincos(dim, float(base))
    found = [("zero", 0.0)] * dim
    for function, places, powers in (
        ("sin", waveform.sine_channels, waveform.sines),
        ("cos", waveform.cosine_channels, waveform.cosines),
    ):
        for place, exponent in zip(places, powers.exponents, strict=True):
            found[place] = (function, float(base) ** -float(exponent))
    return found


def frequencies(state: dict) -> list[tuple[str, float]]:
    """Function and frequency of every channel, as the library has them."""
    return channels_of(state["convention"], state["dim"], state["base"])


@cache
def rows(convention: str, dim: int, base: float, length: int) -> torch.Tensor:
    return encoding_of(convention, dim, base).table(torch.arange(length), dtype=torch.float64)


def table(state: dict) -> torch.Tensor:
    return rows(state["convention"], state["dim"], state["base"], state["length"])


def wavelengths(state: dict) -> list[float]:
    return [tau / frequency for _, frequency in frequencies(state) if frequency]


def test_which_columns_belong_together(said):
    for state, words in said("prose_matrix.aboutColumns", grid()):
        channels, dim = frequencies(state), state["dim"]
        lengths = [w for _, w in channels]
        if "Every two columns are one pair" in words or "Columns 0 and 1 are one pair" in words:
            step, half = 1, dim // 2 * 2
            firsts = range(0, half, 2)
        elif match := re.search(r"Columns j and j \+ (\d+) are one pair", words):
            step = int(match[1])
            firsts = range(step)
        else:
            assert "Sines and cosines alternate" in words
            assert not encoding(state).keeps_shift
            assert [f for f, _ in channels] == [
                ("sin", "cos")[(j + CONVENTIONS[state["convention"]].first) % 2] for j in range(dim)
            ]
            own = len(set(lengths)) == dim
            assert ("a wavelength of its own" in words) is own
            assert ("the same wavelength" in words) is (len(set(lengths)) == 1)
            if own:
                assert sorted(lengths, reverse=True) == lengths  # short wavelengths on the left
            continue
        order = ("cos", "sin") if "a cosine" in words.split(" and ", 2)[1] and step > 1 else None
        for j in firsts:
            (one, w), (other, v) = channels[j], channels[j + step]
            assert isclose(w, v)
            assert {one, other} == {"sin", "cos"}
            left = "a sine on the left" in words or ("a sine and" in words)
            assert one == ("sin" if left else "cos"), (state, words, order)
        paired = {j for first in firsts for j in (first, first + step)}
        rest = [channels[j][0] for j in range(dim) if j not in paired]
        assert rest == (
            ["sin"] if "last column is a sine alone" in words
            else ["zero"] if "last column holds zeros" in words else []
        )  # fmt: skip
        of_pairs = [lengths[j] for j in firsts]
        rising = all(a > b for a, b in itertools.pairwise(of_pairs))
        claims = "short on the left" in words or "short wavelengths stand left" in words
        assert claims is (len(of_pairs) > 1 and rising)
        assert ("makes all wavelengths alike" in words) is (
            len(of_pairs) > 1 and len(set(of_pairs)) == 1
        )


def test_the_notices_hold(said):
    for state, lines in said("prose_notices.notices", grid()):
        words = " ".join(lines)
        channels = frequencies(state)
        own = len({w for _, w in channels}) == len(channels)
        assert ("a frequency of its own" in words) <= own
        assert ("all of them have one frequency" in words) <= (len({w for _, w in channels}) == 1)
        assert ("filled with zeros" in words) is (channels[-1][0] == "zero")
        paired = encoding(state).keeps_shift
        assert ("an unpaired sine" in words) is (
            not paired and CONVENTIONS[state["convention"]].odd == "sine"
        )
        assert ("no exact shift" in words) <= (not paired)
        missing = re.search(r"Not at dim \d+: ([\w, ]+)\.", words)
        named = missing[1].split(", ") if missing else []
        assert named == [name for name in CONVENTIONS if not exists(name, state["dim"])]


def test_what_the_double_exponent_does(said):
    states = [state for state in grid() if state["convention"] == "paper"]
    for state, words in said("prose_matrix.aboutDoubleExponent", states):
        count = min(state["length"], 200)
        still = {}
        for name in ("paper", "double_exponent"):
            values = rows(name, state["dim"], state["base"], count)
            still[name] = int(((values.amax(0) - values.amin(0)) < 0.1).sum())
        assert numbers(words)[0] == still["double_exponent"]
        told = re.search(r"(\d+) of the paper's|paper's it is (\d+)", words)
        assert int(told[1] or told[2]) == still["paper"]
        assert words.startswith("With these numbers it hardly shows") is (
            still["double_exponent"] <= still["paper"]
        )


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


def test_a_wavelength_and_its_turns(said):
    for state, words in said("prose_matrix.aboutWavelength", grid(dimension=[0, 1, 13, 127])):
        function, frequency = frequencies(state)[state["dimension"]]
        if function == "zero":
            assert "holds zeros" in words
        else:
            assert ("a sine of" in words) is (function == "sin")
            assert f"Dimension {state['dimension']} is" in words
            if tau / frequency < 1e9:
                assert isclose(numbers(words)[1], tau / frequency, rel_tol=1e-3)


def test_what_the_first_lane_and_its_numbers_are(said):
    states = grid(dimension=[0, 1, 2, 14, 127], position=[0, 12])
    lanes = dict(enumerate(said("prose_curves.aboutLanes", states)))
    for index, (state, words) in enumerate(said("prose_curves.aboutCurves", states)):
        j, channels = state["dimension"], frequencies(state)
        function, _ = channels[j]
        waveform = encoding(state).waveform
        pairs = set(waveform.sine_channels[: len(waveform.cosine_channels)])
        pairs |= set(waveform.cosine_channels)
        by_pair = j in pairs and CONVENTIONS[state["convention"]].odd != "unpaired"
        assert ("the cursor's pair" in lanes[index][1]) is by_pair
        assert ("column of zeros" in lanes[index][1]) is (function == "zero")
        assert ("has no partner" in words) is (not by_pair and function != "zero")
        if by_pair:
            *_, one = numbers(words)
            assert one == 1.0


def test_how_many_dimensions_turn(said):
    for state, words in said("prose_curves.aboutWavelengths", grid()):
        found = wavelengths(state)
        full = sum(w <= state["length"] for w in found)
        claimed = (
            0 if words.startswith("None") else len(found) if words.startswith("All")
            else int(numbers(words)[0])
        )  # fmt: skip
        assert claimed == full
        assert ("the others" in words) is (0 < full < len(found))
        assert "near from far" not in words  # a column's value comes again within half a turn
    for state, words in said("prose_curves.aboutBase", grid(length=[50])):
        found = wavelengths(state)
        assert ("there is one wavelength" in words) is (
            isclose(min(found), max(found), rel_tol=1e-12)
        )


@pytest.mark.parametrize("base", [1, 1.0001, 1.5, 15.99, 16, 16.01, 81, 10_000])
def test_hands_against_bits(said, base):
    states = [{"clockBase": base, "position": p, "length": 50} for p in (0, 1, 13, 49)]
    ratio = base**0.25
    for _, words in said("prose_clocks.aboutHands", states):
        assert ("half as fast as the one before, as each bit is" in words) is (ratio == 2)
        assert ("turn alike" in words) is (ratio == 1)
        if "times slower" in words:
            assert isclose(numbers(words)[1], ratio, rel_tol=1e-2)
            assert numbers(words)[1] not in (1, 2)
    for state, words in said("prose_clocks.aboutClocks", states):
        assert f"In binary: {state['position']:b}." in words
        assert ("every hand" in words) is (base == 1)


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
            assert ("all have one frequency" in words) is (state["base"] == 1)
            assert len({w for _, w in frequencies(state) if w}) > 1 or state["dim"] % 2


def test_whether_the_farther_one_is_less_similar(said):
    states = grid(dim=[2, 3, 14, 128], length=[2, 13, 50, 300], position=[0, 12, 40])
    for state, words in said("prose_similarity.aboutRise", states):
        length, position = state["length"], state["position"]
        step = 1 if length - 1 - position >= position else -1
        places = range(position, length if step > 0 else -1, step)
        profile = [(table(state)[position] @ table(state)[q]).item() for q in places]
        rises = [k for k, (a, b) in enumerate(itertools.pairwise(profile)) if b > a + 1e-9]
        if words.startswith("At this setting it is"):
            assert not [k for k in rises if profile[k + 1] > profile[k] + 1e-7]
        else:
            k = rises[0]
            assert ("rises at once" in words) is (k == 0)
            a, b = numbers(words)[-2:]
            assert (a, b) == pytest.approx((profile[k], profile[k + 1]), abs=6e-5)
            assert a <= b


def test_no_whole_number_of_positions_is_a_turn(said):
    for state, words in said("prose_similarity.aboutUniqueness", grid(length=[50])):
        shortest = min(wavelengths(state))
        assert isclose(numbers(words)[0], shortest, rel_tol=1e-3)
        turns = [p / shortest for p in range(1, 5000)]
        assert min((abs(t - round(t)) for t in turns if t > 0.5), default=1) > 1e-9


def test_whether_a_matrix_moves_every_position(said):
    for state, words in said("prose_shift.aboutMap", grid(length=[50])):
        unpaired = CONVENTIONS[state["convention"]].odd == "unpaired"
        assert ("one matrix M, the same at every position" in words) is (not unpaired)
        assert ("no matrix moves every position" in words) is (unpaired and state["base"] != 1)
        assert ("by accident" in words) is (unpaired and state["base"] == 1)
        assert ("any other's would do" in words) <= (state["base"] == 1)
        odd_sine = state["convention"] == "paper" and state["dim"] % 2 == 1
        assert ("The last sine, which has no cosine" in words) is odd_sine
        if unpaired and state["base"] == 1:  # it exists: all rows are sin p and cos p
            assert len({w for _, w in frequencies(state)}) == 1
        assert encoding(state).keeps_shift is (not unpaired and not odd_sine)


def test_what_is_said_of_a_dimension_without_a_partner(said):
    """Whether the channel's next value follows from the others': tried by least squares."""
    states = grid(dim=[3, 8, 9], dimension=[0, 1, 2, 7, 8], length=[50])
    for state, words in said("prose_shift.aboutAlone", states):
        every = table(state)
        own = every[:, state["dimension"]]
        moved = torch.linalg.lstsq(every[:-7], own[7:, None], driver="gelsd").solution
        moves = bool((every[:-7] @ moved - own[7:, None]).abs().max() < 1e-9)
        zeros = not own.any()
        assert ("holds zeros" in words) is zeros
        assert ("at base 1 any sine and cosine would move it" in words) is (
            state["base"] == 1 and not zeros
        )
        if "would move it" in words or "no shift changes it" in words:
            assert moves


def test_what_is_noticed_of_odd_widths(said):
    for state, words in said("prose_notices.notices", grid(dim=[3, 9], length=[50])):
        refused = any("exact shift unavailable for it" in line for line in words)
        odd_sine = state["convention"] == "paper"
        assert refused is (odd_sine and state["base"] != 1)
        assert any("unpaired sine" in line for line in words) is odd_sine


def test_the_error_of_the_shift(said):
    for _, words in said("prose_shift.aboutError", grid(offset=[-12, 0, 7], length=[13, 50])):
        if "rounding" in words:
            assert re.search(r"is \d\.\d\u00a0×\u00a010⁻", words)


def test_what_sines_alone_leave(said):
    states = grid(dimension=[0, 1, 14, 127], offset=[-4, 0, 7], length=[50])
    for state, words in said("prose_shift.aboutSines", states):
        function, _ = frequencies(state)[state["dimension"]]
        assert ("holds zeros" in words) is (function == "zero")
        if "leaves" in words:
            left = numbers(words.split("leaves")[1])[0]
            assert 0 <= left <= 100


SENTENCES = ["word", "your cat is a lovely cat", "Cat cat CAT dog", "a b c d e f g h"]


def test_what_is_said_of_a_sentence(said):
    states = [
        {"sentence": sentence, "base": base, "scaled": scaled}
        for sentence in SENTENCES
        for base in BASES
        for scaled in (True, False)
    ]
    for state, words in said("prose_sentence.aboutStill", states):
        count = len(state["sentence"].split())
        values = rows("paper", 14, state["base"], count)
        still = int(((values.amax(0) - values.amin(0)) < 0.1).sum())
        if count == 1:
            assert words.startswith("With one token")
        elif still == 0:
            assert "none of the 14 columns" in words
        else:
            assert f"{still} of the 14 columns change" in words
    for state, words in said("prose_sentence.aboutNorms", states):
        assert ("with the factor" in words) is state["scaled"]
        assert numbers(words)[2] == pytest.approx(7**0.5, abs=5e-3)
    for state, words in said("prose_sentence.aboutScale", states):
        assert ("switch it off" in words) is state["scaled"]


def test_what_is_said_of_words_that_occur_again(said):
    states = [{"attended": sentence, "base": base} for sentence in SENTENCES for base in BASES]
    for function in ("aboutRepeated", "aboutTwins"):
        for state, words in said(f"prose_encoder.{function}", states):
            lower = state["attended"].lower().split()
            again = [word for word in lower if lower.count(word) > 1]
            if not again:
                assert "repeats none" in words or "No word occurs twice" in words
            elif function == "aboutRepeated":
                count = {2: "two", 3: "three"}[lower.count(again[0])]
                assert f"the {count} “" in words
                assert f"“{again[0]}”" in words.lower()
                assert "With it they part" in words
            else:
                first = lower.index(again[0])
                assert f"({first}) and" in words
                assert "exactly 0 with the encoding off" in words
                assert "by 0.0000 with it on" not in words


def test_what_is_said_of_schemes_and_of_stages(said, javascript):
    schemes = ["none", "sinusoidal", "learned", "rotary", "alibi", "t5"]
    states = [
        {"attended": sentence, "scheme": scheme, "base": 10_000}
        for sentence in SENTENCES for scheme in schemes
    ]  # fmt: skip
    for state, words in said("prose_encoder.aboutScheme", states):
        asked = f"state_facts.encoderRunOf({json.dumps(state['attended'])}, 10000, "
        run = javascript([f"{asked}'{state['scheme']}')"])[0]
        off, on = (torch.tensor(run[side]["weights"][0]) for side in ("off", "on"))
        change = (on - off).abs().max().item()
        told = words.split("change by")[1]
        assert ("by 0 at most" in words) is (change == 0)
        if change > 1e-3:
            assert numbers(told)[0] == pytest.approx(change, abs=6e-5)
        if state["scheme"] == "none":
            assert change == 0
        assert ("seeded random" in words) is (state["scheme"] in ("learned", "t5"))
    for state, words in said("prose_encoder.aboutTwins", states):
        again = len(set(state["attended"].lower().split())) < len(state["attended"].split())
        told = "exactly 0 with it on" in words
        assert told is (again and state["scheme"] == "none"), (state, words)
    for state, words in said("prose_encoder.aboutRepeated", states):
        assert ("With it they part" in words) <= (state["scheme"] != "none")
    asked = "((state) => prose_encoder.aboutStage(state, 'encoding') ?? '')"
    for scheme in schemes:
        words = javascript([f"{asked}({{ scheme: '{scheme}' }})"])[0]
        assert ("Zeros" in words) is (scheme not in ("sinusoidal", "learned"))


def test_equal_words_are_said_to_part_where_their_outputs_do(said, javascript):
    """A bias of the distance alone sees a palindrome the same from both of its ends."""
    sentences = ["cat cat", "cat dog cat", "the cat a cat the", "cat dog cat cat", "your cat cat"]
    states = [
        {"attended": sentence, "scheme": scheme, "base": 10_000}
        for sentence in sentences for scheme in ("sinusoidal", "learned", "rotary", "alibi", "t5")
    ]  # fmt: skip
    for state, words in said("prose_encoder.aboutRepeated", states):
        tokens = state["attended"].split()
        again = next(word for i, word in enumerate(tokens) if word in tokens[:i])
        asked = f"state_facts.encoderRunOf('{state['attended']}', 10000, '{state['scheme']}')"
        output = javascript([asked])[0]["on"]["output"]
        rows = [
            tuple(round(v, 6) for v in row)
            for word, row in zip(tokens, output, strict=True) if word == again
        ]  # fmt: skip
        joined = len(set(rows)) < len(rows)
        assert ("With it they part." in words) is not joined, (state, words)
        assert ("their rows part, but not all of their outputs" in words) is joined
        if state["scheme"] == "alibi":
            assert joined is (tokens == tokens[::-1])


def test_an_output_knows_its_place_where_equal_words_part_and_orders_do(said, javascript):
    """Rows of equal words, from the run; and pairs of words, which a symmetric bias cannot tell."""
    sentences = ["cat cat cat", "cat dog cat", "cat dog", "cat", "your cat is a lovely cat"]
    unmoved = {("cat dog", "alibi"), ("cat", "rotary"), ("cat", "alibi"), ("cat", "t5")}
    schemes = ["none", "sinusoidal", "learned", "rotary", "alibi", "t5"]
    states = [
        {"attended": sentence, "scheme": scheme, "base": 10_000}
        for sentence in sentences for scheme in schemes
    ]  # fmt: skip
    for state, words in said("((state) => prose_encoder.aboutStage(state, 'output'))", states):
        asked = (state["attended"], state["scheme"])
        run = javascript([f"state_facts.encoderRunOf('{asked[0]}', 10000, '{asked[1]}')"])[0]
        output = run["on"]["output"]
        rows = {tuple(round(value, 6) for value in row) for row in output}
        placed = state["scheme"] != "none" and asked not in unmoved and len(rows) == len(output)
        assert ("and its place" in words) is placed, (state, words)


def test_the_closest_of_rows_that_nearly_coincide_are_the_librarys(said):
    state = {"convention": "double_exponent", "dim": 2, "base": 1_000_000, "length": 500}
    ((_, words),) = said("prose_similarity.aboutClosest", [state])
    pair = closest_pair(Sinusoidal(2, 1e6, convention="double_exponent"), 500)
    assert f" {pair.first} and {pair.second}, 0.0000 apart. A near-collision." in words


def test_rotary_biases_and_scaling(said):
    states = [
        {"offset": k, "moved": t, "pairing": pairing, "position": 20}
        for k in (-12, 0, 9) for t in (-7, 0, 40) for pairing in ("half", "interleaved")
    ]  # fmt: skip
    for state, words in said("prose_relatives.aboutRotary", states):
        assert f"at distance m − n = {str(state['offset']).replace('-', '−')} it is" in words
        assert ("Move both, and it will stay" in words) is (state["moved"] == 0)
    for state, words in said("prose_relatives.aboutPairing", states):
        assert ("the two agree" in words) is (state["offset"] == 0)
        scores = [each for each in numbers(words) if each != state["offset"]]
        assert len(scores) == (1 if state["offset"] == 0 else 2)
        assert len(set(scores)) == len(scores)
    states = [
        {"heads": heads, "head": head, "offset": k, "reach": reach, "length": 4096}
        for heads in (1, 3, 8, 32) for head in (0, 2, 31) for k in (-40, -1, 0, 1, 40, 4095)
        for reach in ("both", "past")
    ]  # fmt: skip
    for state, words in said("prose_relatives.aboutBias", states):
        distance = torch.tensor(state["offset"])
        if state["reach"] == "past" and state["offset"] < 0:
            assert "after its query" in words
            continue
        added = ALiBi(state["heads"]).profile(distance, dtype=torch.float64)[state["head"]].item()
        bucket = t5_buckets(distance, 32, 128, state["reach"] == "both").item()
        assert f"bucket {bucket}," in words
        assert numbers(words.split("=")[2])[0] == pytest.approx(added, abs=6e-5)
        slope, away = numbers(words.split("ALiBi adds")[1])[:2]
        assert round(slope * away, 4) == numbers(words.split("=")[2])[0]
    for state, words in said("prose_relatives.aboutPenalty", [{"heads": h} for h in (1, 2, 8)]):
        assert ("steeper in some heads" in words) is (len(set(ALiBi(state["heads"]).slopes)) > 1)
    states = [
        {"dim": dim, "base": base, "factor": factor, "trained": trained}
        for dim in (2, 3, 4, 128) for base in (1, 16, 10_000) for factor in (1, 1.5, 64)
        for trained in (16, 2048)
    ]  # fmt: skip
    for state, words in said("prose_relatives.aboutScaling", states):
        refused = state["base"] == 1 or state["dim"] < 4
        assert ("choose" in words) is refused
        assert ("nothing is stretched" in words) is (not refused and state["factor"] == 1)
    for state, words in said("prose_relatives.aboutLengths", states):
        if state["base"] == 1 or state["dim"] < 4:
            continue
        plain = Geometric(state["dim"], float(state["base"]))
        yarn = YaRN(plain, max(state["factor"], 2.0), state["trained"])
        pairs = zip(yarn.radians(), plain.radians(), strict=True)
        alone = sum(float(a) == float(b) for a, b in pairs)
        assert f"leaves {alone} pair" in words
        assert ("both lengths are the same" in words) is (state["factor"] == 1)


def test_rotary_scores_are_the_librarys(said, javascript):
    state = {"position": 20, "offset": 9, "moved": 5, "base": 10_000, "pairing": "half"}
    stages = javascript([f"state_facts.rotaryStagesOf({json.dumps(state)})"])[0]
    rotary = Rotary(8)
    x = {side: torch.tensor(stages[0][side], dtype=torch.float64).view(1, 1, 8) for side in "qk"}
    for stage, shift in ((stages[1], 0), (stages[2], 5)):
        for side, place in (("q", 29 + shift), ("k", 20 + shift)):
            at = rotary.table(torch.tensor([place]), dtype=torch.float64)
            expected = rotary.encode_queries(x[side], at).flatten()
            found = torch.tensor(stage[side], dtype=torch.float64)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        assert stage["m"] - stage["n"] == state["offset"]


def test_what_is_said_of_the_five_codes(said):
    states = [
        {"code": code, "base": base, "length": length, "offset": 7}
        for code in range(5) for base in (1, 1.01, 16, 10_000) for length in (2, 50, 300)
    ]  # fmt: skip
    for state, words in said("prose_why.aboutCode", states):
        shown = min(max(state["length"], 24), 200)
        p = torch.arange(shown, dtype=torch.float64)
        pair = [p.sin(), p.cos()]
        many = rows("paper", 8, state["base"], shown).unbind(1)
        columns = [[p], [p / shown], [p.sin()], pair, many][state["code"]]
        apart = torch.pdist(torch.stack(tuple(columns), 1))
        nearest = apart.min().item()
        if state["code"] == 2:
            assert nearest < 0.1
        if state["code"] == 3:
            assert ("nearly meet" in words) is (nearest < 0.1)
        if state["code"] == 4:
            assert ("far apart. This is the encoding" in words) is (
                nearest >= 0.1 and state["base"] != 1
            )
            assert ("one wavelength" in words) is (state["base"] == 1)
        for told in re.findall(r"are (\d\.\d{4}) apart", words):
            assert float(told) == pytest.approx(nearest, abs=6e-5)


def test_what_is_said_of_two_orders(said):
    for _, words in said("prose_why.aboutOrder", [{"base": base} for base in BASES]):
        assert "without an encoding" in words


def test_no_sentence_of_the_page_speaks_of_a_state_that_it_does_not_ask():
    """Words that once were written into the page, and were false in some states."""
    from posenc.explorer import page

    html = re.sub(r"<script.*</script>", "", page(), flags=re.S)
    for words in ("Every two columns", "two cats", "cat</em>s", "becomes", "right half",
                  "constant along its diagonals", "every pair turns", "the cursor's pair;",
                  "switch it off", "steeper in some", "loses no position"):  # fmt: skip
        assert words not in html, words
