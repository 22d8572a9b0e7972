"""``posenc walk``: the numbers are those of the modules, and order matters only with positions."""

import itertools
import json

import pytest
import torch

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.positions import consecutive

SENTENCE = "your cat is a lovely cat"


@pytest.fixture
def walked(run):
    """The walk of a sentence as data, stages by name (the last of a name wins)."""

    def walked(*words: object) -> dict:
        ran = run("walk", SENTENCE, "--dim", 16, "--heads", 2, "--format", "json", *words)
        assert ran.status == 0, ran
        about = json.loads(ran.out)
        values = {s["name"]: torch.tensor(s["values"]).double() for s in about["stages"]}
        return about | {"by_name": values, "order_of_stages": [s["name"] for s in about["stages"]]}

    return walked


def test_every_stage_is_there_in_its_order(walked):
    names = walked()["order_of_stages"]
    wanted = (
        ["embeddings", "encoding", "sum"]
        + [f"layer norm: {part}" for part in ("mean", "variance", "normalized", "scaled")]
        + ["queries Q", "keys K", "values V", "scaled scores", "softmax", "heads", "heads joined"]
        + ["attention", "residual"]
    )
    assert names[: len(wanted)] == wanted
    assert names[-1] == "output"
    assert [n for n in names if n.startswith("feed-forward")] == [
        "feed-forward: inner",
        "feed-forward: activated",
        "feed-forward",
    ]


def test_the_numbers_follow_from_each_other(walked):
    """Each stage is worked out again here, from the one before it."""
    found = walked()["by_name"]
    x = found["embeddings"] + found["encoding"]
    torch.testing.assert_close(found["sum"], x)
    torch.testing.assert_close(
        found["encoding"], Sinusoidal(16).table(consecutive(6), dtype=torch.float64)
    )
    scores = found["queries Q"] @ found["keys K"].mT / 8**0.5
    torch.testing.assert_close(found["scaled scores"], scores)
    torch.testing.assert_close(found["softmax"], scores.softmax(-1))
    heads = found["softmax"] @ found["values V"]
    torch.testing.assert_close(found["heads"], heads)
    torch.testing.assert_close(found["heads joined"], torch.cat([heads[0], heads[1]], dim=-1))
    torch.testing.assert_close(
        found["feed-forward: activated"], found["feed-forward: inner"].relu()
    )


def test_shapes_are_those_of_the_source_documents(walked):
    about = walked()
    shapes = {s["name"]: s["shape"] for s in about["stages"]}
    assert shapes["softmax"] == [2, 6, 6]
    assert shapes["queries Q"] == [2, 6, 8]
    assert shapes["feed-forward: inner"] == [6, 64]
    assert about["tokens"] == SENTENCE.split()
    assert about["ids"][1] == about["ids"][5]
    rows = torch.tensor(next(s for s in about["stages"] if s["name"] == "softmax")["values"])
    torch.testing.assert_close(rows.sum(-1), torch.ones(2, 6))


def test_equal_words_differ_once_they_have_a_position(walked):
    found = walked()["by_name"]
    assert torch.equal(found["embeddings"][1], found["embeddings"][5])
    assert not torch.equal(found["sum"][1], found["sum"][5])


def test_order_matters_with_an_encoding_and_not_without(walked):
    order = walked()["order"]
    assert order["sentences"] == ["lion kills tiger", "tiger kills lion"]
    assert order["without an encoding"]["attention_difference"] < 1e-12
    assert order["without an encoding"]["output_difference"] < 1e-12
    assert order["with the encoding"]["attention_difference"] > 1e-3
    assert order["with the encoding"]["output_difference"] > 1e-2


def test_the_post_norm_walk_has_its_norms_after_the_sums(walked):
    names = walked("--norm", "post")["order_of_stages"]
    assert names.index("queries Q") == 3
    assert names[names.index("residual") + 1] == "layer norm: mean"
    assert names[-2] == "layer norm: scaled"


def test_the_text_says_that_weights_are_random_and_what_the_order_does(run):
    out = run("walk", SENTENCE).out
    assert "seeded random numbers: mechanism only" in out
    assert "attention sees a set" in out
    assert "told apart" in out
    assert "13. scaled scores  [2, 6, 6]" in out


def by_name(run, *words):
    ran = run("walk", SENTENCE, "--format", "json", *words)
    assert ran.status == 0, ran
    return {each["name"]: each["values"] for each in json.loads(ran.out)["stages"]}


def test_rotary_turns_queries_and_keys_and_leaves_the_sum(run):
    found = by_name(run, "--encoding", "Rotary(8)")
    assert "encoding" not in found
    rotary, positions = Rotary(8), consecutive(6)
    table = rotary.table(positions, dtype=torch.float64)
    for plain, encoded in (
        ("queries Q", "queries with positions"),
        ("keys K", "keys with positions"),
    ):
        x = torch.tensor(found[plain], dtype=torch.float64)[None]
        wanted = rotary.encode_queries(x, table)[0]
        torch.testing.assert_close(torch.tensor(found[encoded], dtype=torch.float64), wanted)
    q, k = (
        torch.tensor(found[f"{name} with positions"], dtype=torch.float64)
        for name in ("queries", "keys")
    )
    torch.testing.assert_close(
        torch.tensor(found["scaled scores"], dtype=torch.float64), q @ k.mT / 8**0.5
    )


def test_alibi_is_added_to_the_scores_and_a_mask_hides(run):
    found = by_name(run, "--encoding", "ALiBi(2)", "--causal")
    scores = torch.tensor(found["scaled scores"], dtype=torch.float64)
    bias = ALiBi(2).table(consecutive(6), consecutive(6), dtype=torch.float64)
    told = found["scores with positions"]
    for head, query, key in itertools.product(range(2), range(6), range(6)):
        value = told[head][query][key]
        if key > query:
            assert value is None  # −∞, which JSON does not have
        else:
            wanted = scores[head, query, key] + bias[head, query, key]
            assert value == pytest.approx(wanted.item(), abs=1e-12)
    weights = torch.tensor(found["softmax"])
    assert (weights.triu(1) == 0).all()


def test_a_mask_alone_is_a_stage_of_its_own(run):
    assert "masked scores" in by_name(run, "--causal")
    assert "masked scores" not in by_name(run)


@pytest.mark.parametrize(
    "encoding",
    ["Learned(16, 64)", "T5Bias(2)", "Shaw(2, 8, 4)", "CoPE(2, 8, 16)", "XPos(Rotary(8))",
     "Positional(tokens=Sinusoidal(16), scores=ALiBi(2))", "Positional()"],
)  # fmt: skip
def test_any_encoding_can_be_walked_with(run, encoding):
    found = by_name(run, "--encoding", encoding)
    assert torch.tensor(found["softmax"]).sum(-1).allclose(torch.ones(2, 6))
    assert ("encoding" in found) is ("Learned" in encoding or "Sinusoidal" in encoding)


@pytest.mark.parametrize(
    ("encoding", "equation", "factors"),
    [
        ("Sinusoidal(16)", "X = E + PE", [1.0]),
        ('Sinusoidal(16, scale="sqrt_dim")', "X = 4 · E + PE", [4.0]),
        ("Convolutional(16)", "X = E + PE", [1.0]),
        ("Positional(tokens=[Learned(16, 8), Sinusoidal(16, scale=0.5)])",
         "X = 0.5 · (E + PE₁) + PE₂", [1.0, 0.5]),
    ],
)  # fmt: skip
def test_the_shown_sum_is_what_its_equation_says(run, encoding, equation, factors):
    ran = run("walk", SENTENCE, "--encoding", encoding, "--format", "json")
    found = json.loads(ran.out)["stages"]
    added = [torch.tensor(each["values"]) for each in found if each["name"] == "encoding"]
    (total,) = (each for each in found if each["name"] == "sum")
    x = torch.tensor(found[0]["values"])
    for factor, table in zip(factors, added, strict=True):
        x = factor * x + table
    torch.testing.assert_close(torch.tensor(total["values"]), x)
    assert total["equation"] == equation
    assert ("scaled" in total["about"]) is ("·" in equation)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("encoding", ["Sinusoidal(4)", "Rotary(2)"])
def test_equations_name_what_they_are_computed_from(run, norm, encoding):
    words = ("--dim", 4, "--norm", norm, "--encoding", encoding, "--format", "json")
    stages = json.loads(run("walk", "a b c d e f g h i j", *words).out)["stages"]
    # Each symbol stands for the last stage that was given this name.
    held: dict[str, torch.Tensor] = {}
    linear = {}
    for stage in stages:
        values = torch.tensor(stage["values"], dtype=torch.float64)
        symbol, _, told = stage["equation"].rpartition(" = ")
        if symbol in ("Q", "K", "V"):
            linear[symbol] = held[told[0]], torch.cat(list(values), -1)
        if stage["name"] == "feed-forward: inner":
            linear["inner"] = held[told[0]], values
        if stage["name"] == "residual":
            before = held[told[0]]
            torch.testing.assert_close(values, before + held[told.partition(" + ")[2]])
        held[symbol or stage["name"]] = values
    assert set(linear) == {"Q", "K", "V", "inner"}
    for source, mapped in linear.values():  # ten tokens of four numbers, by one map and one shift
        known = torch.cat([source, torch.ones(10, 1, dtype=torch.float64)], -1)
        found = torch.linalg.pinv(known, rtol=1e-9) @ mapped
        torch.testing.assert_close(known @ found, mapped)
    names = ("N", "N") if norm == "pre" else ("X" if "Sin" in encoding else "E", "N")
    told = [each["equation"] for each in stages]
    assert f"Q = {names[0]} W + b, split by head" in told
    assert f"{names[1]} W₁ + b₁" in told


@pytest.mark.slow("more of its kind", spares=3)
@pytest.mark.parametrize(
    ("encoding", "said", "not_said"),
    [
        ("Rotary(8)", ["their products know the distance alone", "turns its pairs", "Q' K'ᵀ"], []),
        ("QueryTemperature(8, scale=0.5, period=1)", ["Keys stay what they were", "Q' K'ᵀ"],
         ["the distance alone", "turns its pairs"]),
        ("ALiBi(2)", ["Q Kᵀ / √depth", "softmax · V", "and its place"], ["encode(softmax"]),
        ("CounterRotary(Rotary(8))", ["encode(softmax · V, positions)"], []),
        ("Shaw(2, 8, 4, values=True)", ["encode(softmax · V, positions)"], []),
        ("Positional(tokens=[Learned(16, 8), Sinusoidal(16)])", ["All are added"], ["The two"]),
        ("Positional()", ["it knows its neighbors."], ["and its place"]),
        ("CoPE(2, 8, 16)", ["Positions change no score here", "its neighbors."], ["each score"]),
        ("Temperature(2)", ["Positions change no score here", "its neighbors."], ["its place"]),
        ("Temperature(2, 3)", ["Positions change some scores.", "and its place"], ["each score"]),
        ("T5Bias(2, std=0.0)", ["What distance says is added: 0 everywhere here."], ["its place"]),
        ("FIRE(2)", ["What the two positions say is added."], ["What distance says"]),
        ("Learned(16, 64, std=0.0)", ["none knows its place by it", "its neighbors."],
         ["from here on", "and its place"]),
        ("QueryTemperature(8)", ["its neighbors."], ["its place"]),
        ("QueryTemperature(8, period=4)", ["and its place"], []),
        ("RePo(2, Rotary(8), 16)", ["its neighbors."], ["each score", "and its place"]),
        ("Sinusoidal(16)", ["from here on a vector knows its place", "and its place"], []),
    ],
)  # fmt: skip
def test_what_is_said_holds_for_this_encoding(run, encoding, said, not_said):
    out = " ".join(run("walk", SENTENCE, "--encoding", encoding).out.split())
    for each in said:
        assert each in out
    for each in not_said:
        assert each not in out


def test_a_causal_walk_knows_its_place_by_encodings_that_change_something(run):
    for encoding, placed in (("ALiBi(2)", True), ("CoPE(2, 8, 16)", False)):
        out = run("walk", SENTENCE, "--encoding", encoding, "--causal").out
        assert ("and its place" in out) is placed


@pytest.mark.parametrize(
    ("words", "encoding", "causal"),
    [
        ("cat cat cat", "Rotary(8)", False),
        ("cat cat cat", "Rotary(8)", True),
        ("cat dog cat", "ALiBi(2)", False),
        ("cat dog cat", "ALiBi(2)", True),
        ("cat cat dog", "ALiBi(2)", True),
        ("cat dog cat", "Rotary(8)", False),
        ("cat cat cat", "Sinusoidal(16)", False),
        ("cat", "Sinusoidal(16)", False),
        ("cat", "Rotary(8)", False),
    ],
)
def test_equal_rows_are_not_said_to_know_their_place(run, words, encoding, causal):
    given = ["--encoding", encoding, "--stage", "output", *["--causal"] * causal]
    (output,) = json.loads(run("walk", words, "--format", "json", *given).out)["stages"]
    rows = [tuple(round(value, 6) for value in row) for row in output["values"]]
    placed = len(set(rows)) == len(rows) and (len(rows) > 1 or "Sinusoidal" in encoding)
    assert ("its place" in output["about"]) is placed


def test_one_token_walks(run):
    assert "from here on a vector knows its place" in run("walk", "cat").out


def test_a_narrow_feed_forward_is_not_wider(run):
    assert "mapped to a wider vector" in run("walk", SENTENCE).out
    assert "wider" not in run("walk", SENTENCE, "--inner", 4).out


def test_a_symmetric_bias_does_not_know_a_reversed_sentence(run):
    out = " ".join(run("walk", SENTENCE, "--encoding", "ALiBi(2)").out.split())
    assert "reversed, they have the same distances" in out
    out = " ".join(run("walk", SENTENCE, "--encoding", "ALiBi(2)", "--causal").out.split())
    assert "told apart by the causal mask alone" in out


def test_an_encoding_of_content_alone_is_not_said_to_go_by_distance(run):
    out = " ".join(run("walk", SENTENCE, "--encoding", "RePo(2, Rotary(8), 16)").out.split())
    assert "changes numbers, and none of them by the order of the words" in out
    assert "the same distances" not in out


@pytest.mark.parametrize(
    "encoding",
    ["CoPE(2, 8, 16)", "T5Bias(2, std=0.0)", "Learned(16, 8, std=0.0)", "LogTemperature(2)",
     "ALiBi(2, slopes=[0.0, 0.0])", "Positional()"],
)  # fmt: skip
def test_an_encoding_that_changes_nothing_is_not_said_to_be_symmetric(run, encoding):
    out = " ".join(run("walk", SENTENCE, "--encoding", encoding).out.split())
    assert "this encoding changes nothing in them" in out
    assert "the same distances" not in out
    assert "seeded random here" not in out
    causal = " ".join(run("walk", SENTENCE, "--encoding", encoding, "--causal").out.split())
    assert causal.count("told apart by the causal mask alone") == 2


def test_one_stage_by_number_or_by_name(run, refused):
    whole = run("walk", SENTENCE).out
    for stage in ("14", "softmax"):
        out = run("walk", SENTENCE, "--stage", stage).out
        assert out.count("\n") < 25
        lines = out.splitlines()[2:]
        assert "\n".join(lines) in whole
        assert lines[0].startswith("14. softmax  [2, 6, 6]")
    said = refused("walk", SENTENCE, "--stage", "sofmax")
    assert "there is no stage 'sofmax'; give a number of 3 … 31" in said
    assert "did you mean 'softmax'?" in said


@pytest.mark.parametrize(
    "words",
    [
        ("residual",),
        ("layer norm: mean",),
        ("variance",),
        ("variance", "--norm", "post"),
        ("encoding", "--encoding", "Positional(tokens=[Sinusoidal(16), Learned(16, 8)])"),
    ],
)
def test_all_stages_of_a_name_are_shown(run, words):
    name, *more = words
    stages = json.loads(run("walk", SENTENCE, *more, "--format", "json").out)["stages"]
    want = [each for each in stages if name in (each["name"], each["name"].split(": ")[-1])]
    ran = run("walk", SENTENCE, *more, "--stage", name, "--format", "json")
    assert len(want) > 1
    assert json.loads(ran.out)["stages"] == want
    out = run("walk", SENTENCE, *more, "--stage", name).out
    assert [line for line in out.splitlines() if line[:1].isdigit()] == [
        f"{each['number']}. {each['name']}  {each['shape']}" for each in want
    ]


def test_a_long_text_is_cut_and_says_so(run):
    out = run("walk", "word " * 70).out
    assert "Only the first 64 tokens are shown; 6 more were given." in out


def test_what_cannot_be_walked_is_one_line(refused):
    assert "no text" in refused("walk", "")
    assert "which 3 heads cannot share evenly" in refused("walk", "hi", "--heads", 3)
    assert "--depth is 0" in refused("walk", "hi", "--depth", 0)
    assert "dim is 0" in refused("walk", "hi", "--dim", 0)
    assert "convention is 'x'" in refused("walk", "hi", "--convention", "x")
    assert "this encoder has head_dim 8" in refused("walk", "hi", "--encoding", "Rotary(16)")
    assert "encodes nothing by itself" in refused("walk", "hi", "--encoding", "PoSE(64)")


@pytest.mark.parametrize("within", ["scores=ALiBi(2)", "tokens=Sinusoidal(16)"])
def test_positions_drawn_anew_at_each_call_are_refused(run, refused, within):
    drawn = f"Positional(positions=Randomized(50), {within})"
    said = refused("walk", SENTENCE, "--encoding", drawn)
    assert "Randomized(longest=50) draws positions at each call anew" in said
    assert "leave that out" in said
    # These leave positions alone outside of training.
    training = f"Positional(positions=SHAPE(50), {within})"
    first, second = (run("walk", SENTENCE, "--encoding", training) for _ in range(2))
    assert first.status == 0
    assert first == second


def test_a_variance_of_one_is_said_only_where_it_is_one(run):
    usual, narrow = (run("walk", "a b c", "--dim", dim, "--heads", 1).out for dim in (16, 1))
    assert "mean 0 and variance 1." in usual
    assert "hardly above ε" not in usual
    assert "mean 0 and variance 1." not in narrow
    assert "mean 0 and variance 1, or less where σ² is hardly above ε." in narrow
