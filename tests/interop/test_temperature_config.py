"""Temperatures of queries, read from the configurations of the models that have them."""

import pytest
import torch
from transformers import (
    BeamConfig,
    Inkling2TextConfig,
    InklingTextConfig,
    Llama4TextConfig,
    Ministral3Config,
    Ministral3ForCausalLM,
    Mistral4Config,
)

from posenc import LogTemperature, Positional, QueryTemperature, attention
from posenc.interop.huggingface import rotary_from_config, temperatures_from_config


@pytest.mark.parametrize(
    ("config", "wanted", "said"),
    [
        (Llama4TextConfig(num_hidden_layers=8, floor_scale=100, attn_scale=0.2), [3, 7],
         QueryTemperature(128, 0.2, 100)),
        (Ministral3Config(num_hidden_layers=2), [0, 1],
         QueryTemperature(128, 0.1, 16_384, form="mistral")),
        (Mistral4Config(num_hidden_layers=2), [0, 1],
         QueryTemperature(128, 0.1, 8192, form="mistral")),
        (BeamConfig(num_hidden_layers=8), [5, 7], QueryTemperature(128, 0.1, 2048, form="beam")),
        (InklingTextConfig(num_hidden_layers=6, log_scaling_n_floor=500, log_scaling_alpha=0.3),
         [5], LogTemperature(64, 500, 0.3)),
        (Inkling2TextConfig(num_hidden_layers=3), [0, 1, 2], LogTemperature(48)),
    ],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_each_layer_that_has_one_is_told(config, wanted, said):
    found = temperatures_from_config(config)
    assert [index for index, each in enumerate(found) if each is not None] == wanted
    assert {repr(found[index]) for index in wanted} == {repr(said)}


def test_rotary_and_temperature_are_the_attention_of_ministral_3(monkeypatch):
    """Its own layer, with queries and keys caught where it hands them to attention."""
    torch.manual_seed(0)
    config = Ministral3Config(
        num_hidden_layers=1, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
        head_dim=8, intermediate_size=16, vocab_size=20, attn_implementation="sdpa",
        rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "llama_4_scaling_beta": 0.5,
                         "original_max_position_embeddings": 4, "factor": 3.0},
    )  # fmt: skip
    layer = Ministral3ForCausalLM(config).eval().model
    caught = {}
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        module = getattr(layer.layers[0].self_attn, name)
        module.register_forward_hook(
            lambda _, given, made, name=name: caught.update({name: (given[0], made)})
        )
    with torch.no_grad():
        layer(torch.arange(12).view(1, 12))
    q, k, v = (
        caught[name][1].view(1, 12, -1, 8).transpose(1, 2)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    (temperature,) = temperatures_from_config(config)
    positional = Positional(queries_keys=(rotary_from_config(config), temperature))
    got = attention(q, k, v, is_causal=True, positional=positional)
    want = caught["o_proj"][0]
    torch.testing.assert_close(got.transpose(1, 2).flatten(2), want, rtol=1e-4, atol=1e-5)
    without = attention(q, k, v, is_causal=True,
                        positional=Positional(queries_keys=rotary_from_config(config)))  # fmt: skip
    assert (without.transpose(1, 2).flatten(2) - want).abs().max() > 1e-3
