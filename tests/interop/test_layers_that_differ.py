"""Files that speak of layers one by one or by type, and parts that do not say what they are."""

import copy

import pytest
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.models.molmo2.modeling_molmo2 import Molmo2RotaryEmbedding

from posenc import Rotary
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration, known, names
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config
from posenc.interop.layer_types import layer_types

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}


def test_molmo2_scales_the_layers_that_its_file_lists(oracle):
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
            "rope_theta": 5e5}  # fmt: skip
    file = {
        "model_type": "molmo2_text",
        **SIZES,
        "rope_scaling": yarn,
        "rope_scaling_layers": [1, 3],
    }
    config = AutoConfig.for_model(**file)
    for index, encoding in enumerate(rotaries_from_config(file)):
        oracle.agree(encoding, Molmo2RotaryEmbedding(config, scaled=index in (1, 3)))
    with pytest.raises(ValueError, match="layers differ"):
        rotary_from_config(file)
    alike = rotary_from_config({**file, "rope_scaling_layers": []})
    assert repr(alike) == repr(Rotary(128, base=5e5))


def test_a_layer_that_no_dictionary_is_for_is_not_taken_for_one_that_does_not_turn():
    file = {"model_type": "ours", **SIZES, "rope_parameters": {"full_attention": LINEAR}}
    types = ["full_attention", "sliding_attention"] * 2
    for each in (file, {**file, "layer_types": types}):
        with pytest.raises(ValueError, match="no dictionary"):
            rotaries_from_config(each)
    null = {**file["rope_parameters"], "sliding_attention": None}
    read = rotaries_from_config({**file, "layer_types": types, "rope_parameters": null})
    assert [each is None for each in read] == [False, True] * 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("paligemma", {"num_hidden_layers": 4}),
        ("lfm2_vl", {"num_hidden_layers": 4}),
        ("glmasr", {"hidden_size": 64, "num_attention_heads": 4}),
        ("voxtral", {"model_type": "llama", "head_dim": 32}),
    ],
)
def test_a_part_that_does_not_say_what_it_is_is_what_its_class_makes_of_it(oracle, kind, text):
    file = {"model_type": kind, "text_config": text}
    config = AutoConfig.for_model(kind, text_config=dict(text)).get_text_config()
    module = oracle.module_of(config)
    by_type = hasattr(module, "full_attention_inv_freq")
    for layer_type in ("full_attention", "sliding_attention") if by_type else (None,):
        oracle.agree(rotary_from_config(file, layer_type=layer_type), module, layer_type)


PERIOD_FIELDS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers",
                 "full_attention_interval")  # fmt: skip


@pytest.mark.parametrize("field", PERIOD_FIELDS)
@pytest.mark.parametrize("model_type", [
    "afmoe", "cohere2", "cohere2_moe", "exaone4", "exaone_moe", "gemma3_text", "gemma3n_text",
    "modernbert", "modernbert-decoder", "olmo3", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next",
    "t5gemma2_text", "t5gemma2_decoder",
])  # fmt: skip
def test_layers_lie_by_the_period_that_the_class_has_a_field_for(model_type, field):
    said = {"num_hidden_layers": 12, field: 2}
    made = CONFIG_MAPPING[model_type](**said)
    assert layer_types(read({"model_type": model_type, **said})) == made.layer_types


def test_listed_types_are_those_that_every_class_makes_of_them():
    """Some force the last layer to attend to everything. No list of names here: all are asked."""
    changed = set()
    for model_type, kind in CONFIG_MAPPING.items():
        try:
            own = kind().layer_types
        except Exception:  # no class of its own that is built of defaults, or none with layers
            continue
        if not own:
            continue
        for listed in (own[::-1], own[1:] + own[:1], [own[0]] * len(own), [own[-1]] * len(own)):
            said = {"num_hidden_layers": len(own), "layer_types": list(listed)}
            try:
                made = kind(**copy.deepcopy(said)).layer_types
            except Exception:  # a list that it refuses
                continue
            file = Configuration(said, model_type)
            if made != said["layer_types"]:
                changed.add(file.family)
            assert layer_types(file) == made, model_type
    assert changed == {
        Configuration({}, name).family for name in names() if known(name).get("ends_full")
    }
