"""What every export in keys and arguments refuses alike."""

import pytest

from posenc.interop.exports import gguf_keys, megatron_arguments, vllm_overrides

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
BESIDE = SIZES | {"num_hidden_layers": 2, "rope_theta": 12345.0}
MSCALE = {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
          "original_max_position_embeddings": 4096}  # fmt: skip
WIDE = {"hidden_size": 400, "num_attention_heads": 4}


def gguf(config):
    architecture = "deepseek2" if config["model_type"] == "deepseek_v3" else "llama"
    return gguf_keys(config, architecture=architecture)


REFUSED = [
    (WIDE | {"model_type": "gpt_neox", "rotary_pct": 0.25}, "odd width"),
    ({"model_type": "deepseek_v3", "rope_parameters": MSCALE}, "last channels"),
    (BESIDE | {"model_type": "llava"}, "rope_theta"),
    (SIZES | {"model_type": "granite_swa", "layer_types": ["full_attention"] * 4,
              "layer_rope_theta": [1e4, 1e6, 1e5, 1e4]}, "differently"),
]  # fmt: skip


@pytest.mark.parametrize("export", [gguf, megatron_arguments, vllm_overrides])
@pytest.mark.parametrize(("config", "noun"), REFUSED)
def test_what_no_key_says_is_refused(export, config, noun):
    with pytest.raises(ValueError, match=noun):
        export(config)
