"""What every export in keys and arguments refuses alike."""

import pytest

from posenc.interop.exports import gguf_keys, megatron_arguments, vllm_overrides
from posenc.interop.huggingface import rotary_from_config
from posenc.interop.serving import requests_from_config


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
