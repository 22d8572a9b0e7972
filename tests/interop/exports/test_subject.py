"""What every export in keys and arguments refuses alike."""

import pytest

from posenc.interop.exports import gguf_keys, megatron_arguments, vllm_overrides
from posenc.interop.huggingface import rotary_from_config


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
