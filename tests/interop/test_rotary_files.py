"""Files as they are published, read without transformers, and files that must be refused."""

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.frequencies import Divided, YaRN
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config

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
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
    "num_hidden_layers": 61, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "max_position_embeddings": 163840, "rope_theta": 10000,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                     "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
                     "type": "yarn"},
}  # fmt: skip
GEMMA_3 = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                    "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16},
}  # fmt: skip


def test_phi_3_has_short_and_long_factors_and_one_attention_factor(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PHI_3_128K))
    start, short, long = (rotary_from_config(path, length=n) for n in (None, 4096, 4097))
    assert start.frequencies == short.frequencies
    assert isinstance(long.frequencies, Divided)
    assert long.frequencies.divisors == tuple(PHI_3_128K["rope_scaling"]["long_factor"])
    assert long.frequencies.attention_factor == math.sqrt(1 + math.log(32) / math.log(4096))


def test_deepseek_keeps_its_attention_factor_in_the_softmax():
    yarn = rotary_from_config(DEEPSEEK_V3).frequencies
    assert isinstance(yarn, YaRN)
    assert yarn.attention_factor == 1.0
    assert yarn.softmax_factor == pytest.approx((0.1 * math.log(40) + 1) ** 2, rel=1e-15)


YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**YI, "rope_scaling": {**YARN, "beta_quick": 32}}, "beta_quick"),
        ({**YI, "rope_scaling": {"type": "linear"}}, "needs 'factor'"),
        ({**YI, "rope_scaling": {"type": "ntk", "factor": 2.0}}, "known are default, linear, dyn"),
        ({"model_type": "bert", "hidden_size": 768}, "no rotary encoding in this configuration"),
        (GEMMA_3, "'full_attention', 'sliding_attention'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(config, said):
    with pytest.raises(ValueError, match=said):
        rotary_from_config(config)


JUNK = [None, 0, -1, 1.5, "x", [], {}, [1], True, 10**30, {"a": 1}]
FIELDS = [
    *YI, *PHI_3_128K["rope_scaling"], *YARN, "layer_types", "head_dim", "no_rope_layers",
    "per_layer_config", "text_config", "rope_parameters", "low_freq_factor",
]  # fmt: skip
PUBLISHED = Path(__file__).with_name("published_files.json").read_text(encoding="utf-8")
FILES = [fields for fields, _ in json.loads(PUBLISHED).values()]


@settings(max_examples=150, deadline=None)
@given(
    config=st.sampled_from(FILES),
    junk=st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(JUNK), min_size=1, max_size=2),
    inside=st.booleans(),
)
def test_whatever_a_file_holds_it_is_read_or_refused_in_words(config, junk, inside):
    if inside:
        junk = {"rope_scaling": {**(config.get("rope_scaling") or {}), **junk}}
    with contextlib.suppress(ValueError, TypeError):
        rotaries_from_config({**config, **junk})
