"""The overrides of vLLM, read as vLLM reads them."""

import math

import pytest

from posenc.interop.exports import vllm_overrides
from posenc.interop.huggingface import rotary_from_config

HEADS = {"model_type": "qwen3", "hidden_size": 512, "num_attention_heads": 4, "head_dim": 128,
         "rope_theta": 1e6}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip


def test_the_documented_example():
    """That of vLLM's page on context extension, with the defaults spelled out."""
    said = vllm_overrides(HEADS | {"rope_scaling": YARN})["rope_parameters"]
    documented = {"factor": 4.0, "original_max_position_embeddings": 32768, "rope_theta": 1e6,
                  "rope_type": "yarn"}  # fmt: skip
    assert said == documented | {
        "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True, "attn_factor": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "scaling", [{}, LLAMA3, {"rope_type": "linear", "factor": 2.5}, {"partial_rotary_factor": 0.5}]
)
def test_the_overrides_mean_the_same_rotation(scaling):
    before = HEADS | {"model_type": "glm" if "partial_rotary_factor" in scaling else "qwen3"}
    rope = {"rope_type": "default", "rope_theta": 1e6} | scaling
    before = before | {"rope_parameters": rope}
    bare = {name: value for name, value in before.items() if name != "rope_parameters"}
    after = bare | vllm_overrides(before)
    assert repr(rotary_from_config(after)) == repr(rotary_from_config(before))


@pytest.mark.parametrize("scaling", [{}, LLAMA3])
def test_what_a_class_holds_in_a_field_is_overridden_there(scaling):
    """vLLM lays nested values over the nested configuration; beside it Fuyu looks at none."""
    rope = {"rope_type": "default", "rope_theta": 5e4, "partial_rotary_factor": 0.5} | scaling
    text = {"model_type": "persimmon", "hidden_size": 512, "num_attention_heads": 4}
    before = {"model_type": "fuyu", "text_config": text | {"rope_parameters": rope}}
    said = vllm_overrides(before)
    assert list(said) == ["text_config"]
    after = {"model_type": "fuyu", "text_config": text | said["text_config"]}
    assert repr(rotary_from_config(after)) == repr(rotary_from_config(before))


@pytest.mark.parametrize(
    "of_it",
    [
        {"attention_factor": 0.75},
        {"mscale": 0.7, "mscale_all_dim": 1.0},
        {"mscale": 1.0, "mscale_all_dim": 1.0},
        {"factor": 1.0},
    ],
)
def test_vllm_multiplies_its_own_factor_with_attn_factor(of_it):
    config = HEADS | {"rope_scaling": YARN | of_it}
    said = vllm_overrides(config)["rope_parameters"]
    assert "attention_factor" not in said
    own = 0.1 * math.log(said["factor"]) + 1
    ours = rotary_from_config(config).frequencies.attention_factor
    assert own * said["attn_factor"] == pytest.approx(ours, rel=1e-15)


def test_longrope_says_its_attention_factor():
    factors = [1.0] * 48
    config = {"model_type": "phi3", "hidden_size": 384, "num_attention_heads": 4,
              "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
              "rope_scaling": {"type": "longrope", "short_factor": factors,
                               "long_factor": factors}}  # fmt: skip
    said = vllm_overrides(config)["rope_parameters"]
    expected = math.sqrt(1 + math.log(32) / math.log(4096))
    assert said["short_mscale"] == said["long_mscale"] == pytest.approx(expected)
    assert said["original_max_position_embeddings"] == 4096
    assert said["long_factor"] == factors


REFUSED = [
    ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "length"),
    ({"model_type": "gemma3_text", "num_hidden_layers": 6}, "differently"),
    ({"model_type": "qwen2_vl_text",
      "rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]}}, "axes"),
    ({"rope_parameters": {"rope_type": "proportional", "factor": 2.0}}, "rope type"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "noun"), REFUSED)
def test_what_vllm_would_compute_otherwise_is_refused(config, noun):
    with pytest.raises(ValueError, match=noun):
        vllm_overrides(HEADS | config)
