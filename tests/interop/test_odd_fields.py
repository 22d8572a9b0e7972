"""Files whose fields contradict each other, or stand where a class does not look for them."""

import copy
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from posenc.interop.huggingface import positional_setup, rotary_from_config

PLAIN = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}


def _told(config: dict[str, Any]) -> str:
    return repr(
        [
            (
                part.name,
                part.trained_length,
                repr(layer.positional),
                layer.softmax_scale,
                layer.window,
            )
            for part in positional_setup(config)
            for layer in part.layers
        ]
    )


LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
YARN_OF = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "attention_factor": 1.5,
           "beta_fast": 32.0, "beta_slow": 1.0, "mrope_section": [8, 12, 12]}  # fmt: skip
QWEN = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "rope_parameters": YARN_OF, "max_position_embeddings": 8192}  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "fields", "strays"),
    [
        ("qwen2_vl", QWEN, ()),
        ("qwen2_5_vl", {**QWEN, "head_dim": 128, "original_max_position_embeddings": 2048},
         ("head_dim", "original_max_position_embeddings")),
        ("paddleocr_vl", {**QWEN, "head_dim": 64, "original_max_position_embeddings": 2048},
         ("original_max_position_embeddings",)),
        ("fuyu", {**PLAIN, "rope_theta": 5e4}, ()),
        ("fuyu", {**PLAIN, "rope_scaling": LINEAR, "head_dim": 32}, ("head_dim",)),
        ("fuyu", {**PLAIN, "rope_parameters": LINEAR, "partial_rotary_factor": 1.0},
         ("rope_parameters", "partial_rotary_factor")),
    ],
)  # fmt: skip
def test_what_a_class_does_not_hand_on_to_its_part_is_left_out_and_named(
    model_type, fields, strays
):
    """Flat files: the object that transformers makes of a file decides."""
    made = CONFIG_MAPPING[model_type].from_dict(copy.deepcopy(fields))
    file = {"model_type": model_type, **fields}
    assert _told(file) == _told(made)
    part = positional_setup(file)["text"]
    assert part.strays == strays
    if strays:
        assert "left out" in part.notes[-1]
        with pytest.warns(UserWarning, match=f"left out.*{strays[0]}"):
            rotary_from_config(file)
