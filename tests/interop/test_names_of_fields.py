"""Fields that a class of transformers has under two names: a file may have either."""

import pytest
from transformers import CONFIG_MAPPING

from posenc.interop.families import known, names
from posenc.interop.huggingface import positional_setup, rotary_from_config


def told(config):
    """What there is to say of the layers of each part, and its trained length."""
    return {
        part.name: (part.trained_length, [(*map(repr, (layer.positional, layer.window)),
                                           layer.softmax_scale) for layer in part.layers])
        for part in positional_setup(config).parts
    }  # fmt: skip


def aliased(model_type):
    """Files that say a whole number by either of its two names, and the object of each."""
    facts = known(model_type)
    usual = facts.get("defaults", {})
    for name, field in facts.get("names", {}).items():
        value = usual.get(field, usual.get(name))
        if name == field or type(value) is not int:
            continue
        for each in (name, field):
            try:
                made = CONFIG_MAPPING[model_type](**{each: 2 * value})
            except Exception:  # transformers refuses in many ways
                continue
            yield {"model_type": model_type, each: 2 * value}, made


FEW = ("bailing_hybrid", "glm4_moe_lite", "gpt2", "t5", "bart", "kimi_linear", "recurrent_gemma")


@pytest.mark.parametrize(
    "model_type",
    [
        *FEW,
        *(pytest.param(name, marks=pytest.mark.slow("all types")) for name in names()
          if name not in FEW),
    ],
)  # fmt: skip
def test_either_name_of_a_field_means_what_transformers_takes_it_for(model_type):
    for file, made in aliased(model_type):
        try:
            read = told(file)
        except ValueError:
            continue  # some classes must fill in what a file leaves out
        theirs = told(made)
        same = read.keys() & theirs.keys()  # classes make parts of their own, as backbones
        assert {name: read[name] for name in same} == {name: theirs[name] for name in same}, file


def test_what_turns_of_a_latent_head_may_have_the_name_of_the_whole():
    rotary = rotary_from_config({"model_type": "glm4_moe_lite", "head_dim": 32})
    assert (rotary.head_dim, rotary.rotated_dim, rotary.rotated) == (192 + 32, 32, "suffix")
