"""No model type of transformers is called wrong, but those whose fault is known."""

import re

import pytest
import torch
import transformers
from tests.audit.zoo.wrong.rotary import Turn
from tests.oracle_models import building
from transformers import CONFIG_MAPPING

from posenc.audit import CannotCheckError, check

KNOWN = {
    "fun_asr_nano_encoder": {"truncated-silently"},  # rows beyond its buffer are left out
    "qwen3_asr_encoder": {"truncated-silently"},
    "pegasus_x": {"positions-in-16-bits"},  # they take the dtype of content
    "wav2vec2-bert": {"cast-breaks-it"},  # positions take the dtype of frequencies
    "granite_docling_vision": {"encodes-nothing", "positions-shared"},  # tiny: grids of 1 and 4
}
"""What is wrong with a type, or with the tiny model of it."""

SWITCHED = ("axk1", "glm4_moe_lite", "mistral4", "youtu")
"""Types that pair channels by a switch of their configuration, as DeepSeek-V3."""

SLOW = pytest.mark.slow("models of transformers", spares=4)


def names(report) -> list[str]:
    return [fault.name for fault in report.faults]


@pytest.mark.slow("the parts of tiny models of every type, a second each")
@pytest.mark.parametrize("model_type", sorted(CONFIG_MAPPING))
def test_no_model_type_is_called_wrong(model_type):
    try:
        config = building.config_of(model_type)
    except Exception as reason:
        pytest.skip(f"no tiny configuration: {type(reason).__name__}")
    try:
        report = check(config)
    except CannotCheckError:
        return  # said
    wrong = {fault.name for fault in report.found if fault.severity == "wrong"}
    assert wrong == KNOWN.get(model_type, set()), str(report)


@pytest.mark.parametrize(
    "model_type", ["deepseek_v3", *(pytest.param(t, marks=SLOW) for t in SWITCHED)]
)
def test_a_model_is_asked_with_the_function_that_its_attention_calls(model_type):
    """Its source: `if self.config.rope_interleave: apply_rotary_pos_emb_interleave(…)`."""
    for interleaved, pairing in ((True, "interleaved"), (False, "half")):
        config = building.config_of(model_type)
        config.rope_interleave = interleaved
        report = check(config, only=["encodes-the-sequence", "is-a-rotation", "is-as-configured"])
        assert not report.found, str(report)
        assert f"{pairing} pairing" in report.identity


def test_which_of_two_functions_applies_a_module_alone_is_said_to_be_unseen():
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3RotaryEmbedding

    given = {"config": building.config_of("deepseek_v3")}
    report = check(DeepseekV3RotaryEmbedding, arguments=given, only=["is-as-configured"])
    assert "applied by apply_rotary_pos_emb beside it, one of several" in report.identity
    assert "which was not seen" in str(report.verdicts)


# Models as they are.


@SLOW
def test_llama_of_transformers_is_damaged_by_a_cast_and_precise_enough():
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = transformers.LlamaConfig(hidden_size=256, num_attention_heads=4)
    report = check(lambda: LlamaRotaryEmbedding(config))
    assert names(report) == ["cast-breaks-it"]
    assert "applied by apply_rotary_pos_emb beside it" in report.understood
    farther = check(lambda: LlamaRotaryEmbedding(config), length=10_000_000)
    assert "precision-lost" in names(farther)


SCALED = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
SMALL = {"hidden_size": 128, "num_attention_heads": 2}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
CONFIGURATIONS = [
    ("LlamaConfig", {**SMALL, "rope_parameters": SCALED}, "Llama 3 scaling by 8 from 8,192"),
    ("CohereConfig", {**SMALL, "num_key_value_heads": 2}, "interleaved pairing, base 500,000"),
    ("GPTNeoXConfig", SMALL, "half pairing, base 10,000"),
    ("GptOssConfig", {"num_hidden_layers": 1}, "YaRN by 32 from 4,096, borders not rounded"),
    ("Gemma3TextConfig", {**SMALL, "num_hidden_layers": 6}, "base 1,000,000"),
    ("LlamaConfig", {**SMALL, "rope_parameters": DYNAMIC}, ""),
]


@SLOW
@pytest.mark.parametrize(("kind", "fields", "says"), CONFIGURATIONS)
def test_configurations_of_transformers(kind, fields, says):
    report = check(getattr(transformers, kind)(**fields))
    assert says in report.identity
    assert report.status == (0 if says else 1), str(report)
    assert ("depends-on-length" in names(report)) == (not says)


@pytest.mark.slow("models of several parts")
def test_parts_of_other_configurations_are_asked_each():
    """They are as wide as each other, and have no numbers until they are built."""
    bases = {"encoder": 5e5, "global": 5e5, "decoder": 1234.0, "patcher": 5e5}
    small = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1}
    parts = {
        f"{part}_config": small | {"rope_parameters": {"rope_type": "default", "rope_theta": base}}
        for part, base in bases.items()
    }
    identity = check(transformers.BltConfig(vocab_size=16, **parts)).identity
    assert "base 500,000" in identity
    assert re.search(r"local_decoder\S+ \S*.*base 1,234", identity), identity


@pytest.mark.slow("a long bias")
def test_alibi_of_bloom_is_coarse_in_bfloat16():
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    def bias(dtype):
        return lambda length: build_alibi_tensor(torch.ones(1, length), 8, dtype).view(8, 1, length)

    (coarse,) = check(bias(torch.bfloat16)).faults
    assert coarse.name == "bias-in-16-bits"
    assert coarse.number > 4
    report = check(bias(torch.float32))
    assert not report.faults
    assert [note.name for note in report.notes] == ["key-only"]


@SLOW
def test_a_configuration_beside_it():
    config = {"model_type": "llama", "head_dim": 32, "rope_theta": 1e4, **SMALL}
    assert "unlike-its-configuration" not in names(check(Turn, config=config))
    other = check(Turn, config={**config, "rope_theta": 5e5})
    assert "unlike-its-configuration" in names(other)
    assert "the configuration means base 500,000" in str(other)
    paired = check(Turn, config={**config, "model_type": "cohere"})
    assert "pairing-of-the-other-convention" in names(paired)
