"""``posenc walk``: the numbers are those of the modules, and order matters only with positions."""

import json

import pytest
import torch

from posenc import Sinusoidal
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


def test_a_long_text_is_cut_and_says_so(run):
    out = run("walk", "word " * 70).out
    assert "Only the first 64 tokens are shown; 6 more were given." in out


def test_what_cannot_be_walked_is_one_line(refused):
    assert "no text" in refused("walk", "")
    assert "which 3 heads cannot share evenly" in refused("walk", "hi", "--heads", 3)
    assert "--depth is 0" in refused("walk", "hi", "--depth", 0)
    assert "dim is 0" in refused("walk", "hi", "--dim", 0)
    assert "convention is 'x'" in refused("walk", "hi", "--convention", "x")
