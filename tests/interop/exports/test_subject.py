"""What every export in keys and arguments refuses alike."""

import pytest

from posenc.inspection.rotary import inspect_config
from posenc.interop.caches import key_storage
from posenc.interop.configurations import warn_of_strays
from posenc.interop.exports import arrays, gguf_keys, megatron_arguments, vllm_overrides
from posenc.interop.exports.subject import only_part
from posenc.interop.huggingface import (
    rotaries_from_config,
    rotary_from_config,
    temperatures_from_config,
)
from posenc.interop.serving import requests_from_config
from posenc.interop.weights import row_orders


@pytest.mark.parametrize("export", [gguf_keys, megatron_arguments, vllm_overrides])
@pytest.mark.parametrize(
    "given",
    [
        {"model_type": "gpt_neox", "rotary_pct": 0.25},
        {"model_type": "phi", "partial_rotary_factor": 0.25,
         "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    ],
)  # fmt: skip
def test_powers_over_an_odd_width_are_refused(export, given):
    model = {"hidden_size": 400, "num_attention_heads": 4, **given}
    assert len(rotary_from_config(model).frequencies) == 13
    with pytest.raises(ValueError, match=r"odd width.*Geometric\(dim=25"):
        export(model)


@pytest.mark.parametrize(
    "export",
    [
        lambda model: gguf_keys(model, architecture="llama"),
        megatron_arguments,
        requests_from_config,
        vllm_overrides,
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        {"model_type": "granite_swa", "layer_rope_theta": [1e4, 1e6, 1e5, 1e4]},
        {"model_type": "molmo2_text", "rope_scaling_layers": [3],
         "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ],
)  # fmt: skip
def test_layers_of_one_type_that_rotate_differently_are_refused(export, given):
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
    kinds = {"layer_types": ["full_attention"] * 4} if "layer_rope_theta" in given else {}
    with pytest.raises(ValueError, match="rotate differently"):
        export({**sizes, **kinds, **given})


BESIDE = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "rope_theta": 12345.0,
}


@pytest.mark.parametrize(
    "export", [arrays, gguf_keys, megatron_arguments, requests_from_config, vllm_overrides]
)
@pytest.mark.parametrize("model_type", ["aria", "llava"])
def test_fields_that_the_class_of_a_model_does_not_look_for_are_refused(export, model_type):
    with pytest.raises(ValueError, match=r"rope_theta stand beside .* Write them into text_config"):
        export({"model_type": model_type, **BESIDE})


def test_one_such_field_is_spoken_of_as_one():
    file = {"model_type": "qwen3_vl", "head_dim": 16}
    words = "^head_dim stands beside a missing text_config and is .* look for it .* Write it into"
    with pytest.warns(UserWarning, match=words):
        warn_of_strays(file)
    with pytest.raises(ValueError, match=r"head_dim stands beside .* look for it.* take it out"):
        only_part(file, "An export", part="text")


def test_a_part_beside_one_with_strays_is_exported():
    with pytest.raises(ValueError, match="Save its parameters"):
        arrays({"model_type": "qwen3_vl", **BESIDE}, part="vision")
    within = {"model_type": "llava", "text_config": {"model_type": "llama", **BESIDE}}
    assert "12345" in megatron_arguments(within)


READING = [
    rotary_from_config,
    rotaries_from_config,
    temperatures_from_config,
    inspect_config,
    key_storage,
    lambda config: row_orders(config, QUERIES_AND_KEYS),
]
QUERIES_AND_KEYS = {
    f"layers.{layer}.self_attn.{name}_proj.weight": (64, 64) for layer in (0, 1) for name in "qk"
}


@pytest.mark.parametrize("reading", READING)
def test_reading_warns_of_fields_that_the_class_does_not_look_for(reading, recwarn):
    with pytest.warns(UserWarning, match="rope_theta.* stand beside a missing text_config"):
        reading({"model_type": "qwen3_vl", **BESIDE, "head_dim": 16, "num_key_value_heads": 4})
    recwarn.clear()
    reading({"model_type": "llava", "text_config": {"model_type": "llama", **BESIDE}})
    reading({"model_type": "llama", **BESIDE})
    assert not recwarn


@pytest.mark.parametrize(
    "export",
    [
        lambda model: gguf_keys(model, architecture="deepseek2"),
        megatron_arguments,
        vllm_overrides,
    ],
)
def test_a_softmax_factor_is_that_of_the_families_that_heed_it(export):
    rope = {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096}  # fmt: skip
    with pytest.raises(ValueError, match=r"its softmax scale is multiplied with 1\.29"):
        export({"model_type": "deepseek_v3", "rope_parameters": rope})
