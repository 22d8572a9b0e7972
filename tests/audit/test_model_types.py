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


@pytest.mark.parametrize("model_type", ["longcat_flash", "glm4v_text", "pixtral"])
def test_types_that_were_called_wrong_are_understood(model_type):
    """Channels in another order, a second function for images, and a rotation on a grid."""
    report = check(building.config_of(model_type))
    assert report.status == 0, str(report)
    assert "base 10,000" in report.identity
