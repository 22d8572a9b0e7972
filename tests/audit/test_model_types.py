"""No model type of transformers is called wrong, but those whose fault is known."""

import pytest
from tests.oracle_models import building
from transformers import CONFIG_MAPPING

from posenc.audit import CannotCheckError, check

KNOWN = {
    "fun_asr_nano_encoder": {"truncated-silently"},  # rows beyond its buffer are left out
    "qwen3_asr_encoder": {"truncated-silently"},
    "granite_docling_vision": {"encodes-nothing", "positions-shared"},  # tiny: grids of 1 and 4
}
"""What is wrong with a type, or with the tiny model of it."""

SWITCHED = ("axk1", "glm4_moe_lite", "mistral4", "youtu")
"""Types that pair channels by a switch of their configuration, as DeepSeek-V3."""


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


def of_attention(model_type, **changed):
    """What a configuration is told to be, by the questions that say it."""
    config = building.config_of(model_type)
    for name, value in changed.items():
        setattr(config, name, value)
    report = check(config, only=["encodes-the-sequence", "is-a-rotation", "is-as-configured"])
    assert not report.found, str(report)
    return report.identity


@pytest.mark.parametrize(
    "model_type",
    ["deepseek_v3", *(pytest.param(t, marks=pytest.mark.slow("more of them")) for t in SWITCHED)],
)
def test_a_model_is_asked_with_the_function_that_its_attention_calls(model_type):
    """Its source: `if self.config.rope_interleave: apply_rotary_pos_emb_interleave(…)`."""
    assert "interleaved pairing" in of_attention(model_type, rope_interleave=True)
    assert "half pairing" in of_attention(model_type, rope_interleave=False)


@pytest.mark.slow("two more models")
@pytest.mark.parametrize(
    ("model_type", "pairing"), [("deepseek_v32", "interleaved"), ("qwen2_vl_text", "half")]
)
def test_what_an_indexer_or_images_are_turned_by_is_not_taken(model_type, pairing):
    assert f"{pairing} pairing" in of_attention(model_type)


def test_which_of_two_functions_applies_a_module_alone_is_said_to_be_unseen():
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3RotaryEmbedding

    given = {"config": building.config_of("deepseek_v3")}
    report = check(DeepseekV3RotaryEmbedding, arguments=given, only=["is-as-configured"])
    assert "applied by apply_rotary_pos_emb beside it, one of several" in report.identity
    assert "which was not seen" in str(report.verdicts)


@pytest.mark.parametrize("model_type", ["longcat_flash", "glm4v_text", "pixtral"])
def test_types_that_were_called_wrong_are_understood(model_type):
    """Channels in another order, a second function for images, and a rotation on a grid."""
    report = check(building.config_of(model_type))
    assert report.status == 0, str(report)
    assert "base 10,000" in report.identity
