"""A run is a function of its configuration."""

import json

import torch
from msgspec.structs import replace
from tests.lab.conftest import configuration
from tests.torch_defaults import default_dtype

from posenc.lab import ModelSize, trained
from posenc.lab.configuration import Extension, Training
from posenc.lab.working import make

RANDOM = ("Rotary(4)", "Learned(8, 64)", "Randomized(64)")


def test_body_and_data_are_the_same_for_every_encoding():
    hashes = [trained(configuration(use)).written["hashes"] for use in ((), ("ALiBi(2)",), RANDOM)]
    for name in ("body", "data"):
        assert len({each[name] for each in hashes}) == 1, name
    assert len({each["weights"] for each in hashes}) == 3
    other = trained(configuration(seed=1)).written["hashes"]
    assert all(other[name] != hashes[0][name] for name in ("body", "data"))


def test_what_the_caller_has_set_decides_nothing_and_stays():
    expected, before = trained(configuration(RANDOM)).written, torch.get_rng_state()
    with default_dtype(torch.float64), torch.device("meta"):
        assert trained(configuration(RANDOM)).written == expected
        assert torch.get_default_dtype() == torch.float64
    assert torch.equal(torch.get_rng_state(), before)


def test_layers_without_positions_see_none_and_the_others_share_what_they_learn(store):
    """With all layers bare, the scores are those of NoPE; what is shared counts once."""
    t5, bare = "T5Bias(2, 4, 8, bidirectional=False)", (0, 1)
    both = trained(configuration((t5,), nope_layers=bare)).written
    assert both["scores"] == trained(configuration(())).written["scores"]
    asked = replace(configuration((t5,), nope_layers=bare), model=ModelSize(8, 2, 4))
    made = make(asked, store)
    assert made["outcome"]["parameters"]["encoding"] == 2 * 4
    weights = [w for name, w in store.weights(asked.id).items() if ".positional." in name]
    assert len(weights) == 4 - len(bare)
    assert all(torch.equal(each, weights[0]) for each in weights)


def test_the_learning_rate_warms_up_and_falls_as_a_cosine():
    training = Training(steps=200, learning_rate=1.0)
    assert [round(training.rate(step), 3) for step in (0, 19, 20, 110, 199)] == [
        0.05, 1.0, 1.0, 0.5, 0.0
    ]  # fmt: skip


def test_an_extension_takes_the_weights_and_changes_the_encoding_alone(store):
    base = configuration(("Rotary(4)",))
    made = make(base, store)
    same = configuration(("Rotary(4)",), extension=Extension(base.id, ("Rotary(4)",), "", factor=2))
    again = make(same, store)["outcome"]
    assert again["scores"] == made["outcome"]["scores"]
    assert again["hashes"]["weights"] == made["outcome"]["hashes"]["weights"]
    linear = Extension(base.id, ("Rotary(Linear(Geometric(4), factor=2))",), "", 2, steps=2)
    tuned = make(configuration(("Rotary(4)",), extension=linear), store)["outcome"]
    assert tuned["steps"] == 2
    assert tuned["hashes"]["weights"] != made["outcome"]["hashes"]["weights"]


def test_what_diverges_is_a_result_and_says_so():
    asked = configuration(steps=30)
    asked = replace(asked, training=replace(asked.training, learning_rate=1e30))
    found = trained(asked).written
    assert found["diverged"]
    assert found["steps"] < 30
    assert found["loss"] is None
    assert set(found["scores"].values()) == {None}  # not those of the largest of no numbers
    json.dumps(found, allow_nan=False)  # which other readers of JSON would not take
