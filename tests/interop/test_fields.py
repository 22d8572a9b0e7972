"""Fields of files: under either of two names, where no class looks for them, or of no use."""

import copy

import pytest
from transformers import CONFIG_MAPPING

from posenc import Rotary
from posenc.interop.fields import known, names
from posenc.interop.huggingface import positional_setup, rotaries_from_config, rotary_from_config

PLAIN = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "attention_factor": 1.5,
        "beta_fast": 32.0, "beta_slow": 1.0, "mrope_section": [8, 12, 12]}  # fmt: skip
QWEN_VL = {**PLAIN, "rope_parameters": YARN, "max_position_embeddings": 8192}
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
QWEN = {"model_type": "qwen", **SIZES, "rotary_emb_base": 10000, "rotary_pct": 1.0,
        "seq_length": 2048, "max_position_embeddings": 8192}  # fmt: skip


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


@pytest.mark.parametrize(
    ("model_type", "fields", "strays"),
    [
        ("qwen2_vl", QWEN_VL, ()),
        ("qwen2_5_vl", {**QWEN_VL, "head_dim": 128, "original_max_position_embeddings": 2048},
         ("head_dim", "original_max_position_embeddings")),
        ("paddleocr_vl", {**QWEN_VL, "head_dim": 64, "original_max_position_embeddings": 2048},
         ("original_max_position_embeddings",)),
        ("fuyu", {**PLAIN, "rope_theta": 5e4}, ()),
        ("fuyu", {**PLAIN, "rope_scaling": LINEAR, "head_dim": 32}, ("head_dim",)),
        ("fuyu", {**PLAIN, "rope_parameters": LINEAR, "partial_rotary_factor": 1.0},
         ("rope_parameters", "partial_rotary_factor")),
    ],
)  # fmt: skip
def test_what_a_class_does_not_hand_on_to_its_part_is_left_out_and_named(
    model_type, fields, strays
):
    """Flat files: the object that transformers makes of a file decides."""
    made = CONFIG_MAPPING[model_type].from_dict(copy.deepcopy(fields))
    file = {"model_type": model_type, **fields}
    assert told(file) == told(made)
    part = positional_setup(file)["text"]
    assert part.strays == strays
    if strays:
        assert "left out" in part.notes[-1]
        with pytest.warns(UserWarning, match=f"left out.*{strays[0]}"):
            rotary_from_config(file)


@pytest.mark.parametrize("base", [1e4, None])
@pytest.mark.parametrize("model_type", ["gpt2", "bert", "bloom", "t5", "opt", "inkling_text"])
def test_a_stray_base_makes_no_model_rotate(model_type, base):
    file = {"model_type": model_type, "rope_theta": base}
    with pytest.raises(ValueError, match="no rotary encoding"):
        rotary_from_config(file)
    stray, plain = positional_setup(file), positional_setup({"model_type": model_type})
    for with_it, without in zip(stray.parts, plain.parts, strict=True):
        assert repr(with_it.layers) == repr(without.layers)
    said = "rope_theta stands in the file, and the model does not look at it"
    assert (said in stray.parts[0].notes) is (base is not None)


@pytest.mark.parametrize(
    ("model_type", "field"), [("bert", "rope_theta"), ("xlm-roberta", "rotary_emb_base")]
)
def test_a_file_that_names_its_own_class_is_of_an_unknown_one(model_type, field):
    file = {"model_type": model_type, **SIZES, field: 160_000, "max_position_embeddings": 2048}
    own = {**file, "auto_map": {"AutoModel": "modeling.NewModel"}}
    assert {*map(repr, rotaries_from_config(own))} == {repr(Rotary(16, base=160_000.0))}
    assert repr(rotary_from_config(own)) == repr(Rotary(16, base=160_000.0))
    with pytest.raises(ValueError, match=r"of its own code rotates by it is not"):
        rotary_from_config({**own, "rope_ratio": 50})
    with pytest.raises(ValueError, match="no rotary encoding"):
        rotary_from_config({**file, "auto_map": {"AutoTokenizer": "tokens.NewTokens"}})


def test_switches_of_the_first_qwen_are_told():
    switches = {"use_dynamic_ntk": True, "use_logn_attn": True}
    notes = positional_setup({**QWEN, **switches})["text"].notes
    assert {note.partition(" ")[0] for note in notes} == {*switches, "seq_length"}
    for read in (rotary_from_config, rotaries_from_config):
        with pytest.warns(UserWarning, match="use_dynamic_ntk, use_logn_attn, seq_length"):
            read({**QWEN, **switches}, length=2048)
        with pytest.raises(ValueError, match="changes the frequencies of 2049 tokens"):
            read({**QWEN, **switches}, length=2049)
    notes = positional_setup({"model_type": "llama", **switches})["text"].notes
    assert [note.partition(" ")[0] for note in notes] == [*switches]
