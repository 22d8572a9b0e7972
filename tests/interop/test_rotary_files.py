"""Files as they are published, read without transformers, and files that must be refused."""

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from posenc import MultimodalRotary
from posenc.frequencies import Divided, Geometric, Linear, YaRN
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config

LLAMA_31 = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
PHI_3_128K = {
    "model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0 + i / 50 for i in range(48)],
                     "long_factor": [1.0 + i for i in range(48)]},
}  # fmt: skip
YI = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 4096, "rope_theta": 5000000.0, "rope_scaling": None,
}  # fmt: skip
QWEN_25_YARN = {
    "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 28,
    "max_position_embeddings": 32768, "rope_theta": 1000000.0,
    "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"},
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
    "num_hidden_layers": 61, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "max_position_embeddings": 163840, "rope_theta": 10000,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                     "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
                     "type": "yarn"},
}  # fmt: skip
PYTHIA = {
    "model_type": "gpt_neox", "hidden_size": 2048, "num_attention_heads": 16,
    "num_hidden_layers": 16, "max_position_embeddings": 2048, "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
}  # fmt: skip
GEMMA_3 = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                    "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16},
}  # fmt: skip
MODERNBERT = {
    "model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12,
    "num_hidden_layers": 22, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0, "max_position_embeddings": 8192,
}  # fmt: skip
QWEN2_VL = {
    "model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28,
    "num_hidden_layers": 28, "max_position_embeddings": 32768, "rope_theta": 1000000.0,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
}  # fmt: skip
LLAMA_1 = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
PUBLISHED = {
    "llama 3.1": LLAMA_31, "phi-3-128k": PHI_3_128K, "yi": YI, "qwen2.5 with yarn": QWEN_25_YARN,
    "deepseek-v3": DEEPSEEK_V3, "pythia": PYTHIA,
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    """Writes a configuration as a file, and gives its path."""

    def write(config: object) -> Path:
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return path

    return write


@pytest.mark.parametrize("config", PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_file_means_what_transformers_reads_in_it(oracle, written, config):
    path = written(config)
    oracle.agree(rotary_from_config(path), oracle.module_of(AutoConfig.from_pretrained(path)))
    assert repr(rotary_from_config(str(path))) == repr(rotary_from_config(path))


def test_phi_3_has_short_and_long_factors_and_one_attention_factor(written):
    path = written(PHI_3_128K)
    start, short, long = (rotary_from_config(path, length=n) for n in (None, 4096, 4097))
    assert start.frequencies == short.frequencies
    assert isinstance(long.frequencies, Divided)
    assert long.frequencies.divisors == tuple(PHI_3_128K["rope_scaling"]["long_factor"])
    assert long.frequencies.attention_factor == math.sqrt(1 + math.log(32) / math.log(4096))


@pytest.mark.parametrize("name", ["su", "yarn"])
def test_phi_3_had_other_names_for_its_type(written, name):
    """transformers 5 loads them no more: it looks for the trained length too early."""
    renamed = {**PHI_3_128K, "rope_scaling": {**PHI_3_128K["rope_scaling"], "type": name}}
    assert repr(rotary_from_config(written(renamed))) == repr(rotary_from_config(PHI_3_128K))


def test_deepseek_keeps_its_attention_factor_in_the_softmax(written):
    yarn = rotary_from_config(written(DEEPSEEK_V3)).frequencies
    assert isinstance(yarn, YaRN)
    assert yarn.attention_factor == 1.0
    assert yarn.softmax_factor == pytest.approx((0.1 * math.log(40) + 1) ** 2, rel=1e-15)


def test_gemma_3_scales_only_the_layers_that_see_everything(written):
    layers = rotaries_from_config(written(GEMMA_3))
    assert len(layers) == 34
    assert layers[5].frequencies == Linear(Geometric(256, 1e6), 8.0)
    assert layers[4].frequencies == layers[6].frequencies == Geometric(256, 1e4)


def test_modernbert_begins_with_a_layer_that_sees_everything(written):
    bases = [layer.frequencies.base for layer in rotaries_from_config(written(MODERNBERT))]
    assert bases == [160000.0 if index % 3 == 0 else 10000.0 for index in range(22)]


def test_qwen2_vl_has_sections(written):
    encoding = rotary_from_config(written(QWEN2_VL))
    assert isinstance(encoding, MultimodalRotary)
    assert encoding.sections == (16, 24, 24)


def test_a_file_from_before_there_were_rope_keys():
    assert rotary_from_config(LLAMA_1).frequencies == Geometric(128, 10_000.0)


YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**YI, "rope_scaling": {**YARN, "beta_quick": 32}}, "beta_quick"),
        ({**YI, "rope_scaling": {"type": "linear", "facto": 2.0}}, "facto"),
        ({**YI, "rope_scaling": {"type": "linear"}}, "needs 'factor'"),
        ({**YI, "rope_scaling": {"type": "ntk", "factor": 2.0}}, "known are default, linear, dyn"),
        ({**LLAMA_31, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor"),
        (
            {
                **PHI_3_128K,
                "rope_scaling": {
                    "type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1.0] * 47
                },
            },
            "47 divisors for 48 frequencies",
        ),
        ({"model_type": "bert", "hidden_size": 768}, "no rotary encoding in this configuration"),
        ({"model_type": "falcon", "alibi": True, "rope_theta": 1e4}, "no rotary encoding"),
        ({"model_type": "qwen2_vl_vision", "rope_theta": 1e4}, "coordinates"),
        ({"model_type": "ours", "rope_theta": 1e4}, "hidden_size"),
        ({**YI, "rope_parameters": {"full_attention": {}, "facto": 2}}, "facto beside"),
        ({**PYTHIA, "rotary_pct": 1.5}, "1.5 of a head"),
        ({**YI, "head_dim": 10**30}, "a whole number from 1 to 1,048,576"),
        ({**YI, "rope_scaling": {**YARN, "factor": "4"}}, "factor is '4'"),
        ({**YI, "rope_scaling": "yarn"}, "rope_scaling is 'yarn'"),
        (GEMMA_3, "'full_attention', 'sliding_attention'"),
        ({"model_type": "gemma3", "rope_parameters": {"factor": 2.0}}, "each type"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_advice(written, config, said):
    with pytest.raises(ValueError, match=said):
        rotary_from_config(written(config))


JUNK = [None, 0, -1, 1.5, "x", [], {}, [1], True, 10**30, {"a": 1}]
FIELDS = [*LLAMA_31, *PHI_3_128K["rope_scaling"], *YARN, "layer_types", "head_dim",
          "no_rope_layers", "per_layer_config", "text_config", "rope_parameters"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    config=st.sampled_from([*PUBLISHED.values(), GEMMA_3, MODERNBERT, QWEN2_VL]),
    junk=st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(JUNK), min_size=1, max_size=2),
    inside=st.booleans(),
)
def test_whatever_a_file_holds_it_is_read_or_refused_in_words(config, junk, inside):
    if inside:
        junk = {"rope_scaling": {**(config.get("rope_scaling") or {}), **junk}}
    with contextlib.suppress(ValueError, TypeError):
        rotaries_from_config({**config, **junk})


def test_no_layers_of_that_type(written):
    with pytest.raises(ValueError, match="'full_attention', 'sliding_attention'"):
        rotary_from_config(written(GEMMA_3), layer_type="chunked_attention")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "3"])
def test_no_json_object(written, text):
    with pytest.raises(ValueError, match="config"):
        rotary_from_config(written(text))


def test_no_file_and_no_configuration(tmp_path):
    with pytest.raises(FileNotFoundError):
        rotary_from_config(tmp_path / "config.json")
    with pytest.raises(TypeError, match="config is a int"):
        rotary_from_config(3)


def test_layer_types_that_are_too_few(written):
    with pytest.raises(ValueError, match="names 2 layers"):
        rotaries_from_config(written({**YI, "layer_types": ["full_attention"] * 2}))
