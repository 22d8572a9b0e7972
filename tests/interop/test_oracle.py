"""What the oracle sees of small models, against what their code and papers say."""

import pytest
import torch
from tests.oracle_models.layers import asked, layers_of
from tests.oracle_models.masks import Reach
from transformers import CONFIG_MAPPING

from posenc.frequencies import Geometric

ALL, BOTH = Reach(after=0), Reach()

# By type: fields; then of its kinds of layers: how many, pairing, channels that turn, base, width
# of a head, scale, reach.
CASES = {
    "llama": ({"num_hidden_layers": 2}, {(2, "half", 128, 1e4, 128, 128**-0.5, ALL)}),
    "cohere": ({"num_hidden_layers": 2}, {(2, "interleaved", 128, 5e5, 128, 128**-0.5, ALL)}),
    "smollm3": ({"num_hidden_layers": 4}, {(3, "half", 128, 2e6, 128, 128**-0.5, ALL),
                                           (1, None, 0, None, 128, 128**-0.5, ALL)}),
    "gemma3_text": ({"num_hidden_layers": 6}, {(1, "half", 256, 1e6, 256, 0.0625, ALL),
                                               (5, "half", 256, 1e4, 256, 0.0625, Reach(4096, 0))}),
    "modernbert": ({"num_hidden_layers": 3, "local_attention": 8},
                   {(1, "half", 64, 16e4, 64, 0.125, BOTH),
                    (2, "half", 64, 1e4, 64, 0.125, Reach(5, 4))}),
    "deepseek_v3": ({"num_hidden_layers": 1}, {(1, "interleaved", 64, 1e4, 192, 192**-0.5, ALL)}),
    "roformer": ({"num_hidden_layers": 1}, {(1, "interleaved", 64, 1e4, 64, 0.125, BOTH)}),
    "bloom": ({"n_layer": 1}, {(1, None, 0, None, None, None, ALL)}),
    "llama4_text": ({"num_hidden_layers": 4},
                    {(3, "interleaved", 128, 5e5, 128, 128**-0.5, Reach(None, 0, 8192)),
                     (1, None, 0, None, 128, 128**-0.5, ALL)}),
    "gptj": ({"n_layer": 1}, {(1, "interleaved", 64, 1e4, 256, 0.0625, ALL)}),
    "glm4": ({"num_hidden_layers": 1}, {(1, "interleaved", 64, 1e4, 128, 128**-0.5, ALL)}),
    "gpt_neox": ({"num_hidden_layers": 1}, {(1, "half", 24, 1e4, 96, 96**-0.5, ALL)}),
    "mistral": ({"num_hidden_layers": 1}, {(1, "half", 128, 1e4, 128, 128**-0.5, Reach(4096, 0))}),
    "blt_patcher": ({"num_hidden_layers": 1},
                    {(1, "interleaved", 64, 1e4, 64, 0.125, Reach(512, 0))}),
}  # fmt: skip
QUICK = ("llama", "smollm3", "modernbert", "deepseek_v3", "roformer")


def table(cases):
    slow = pytest.mark.slow("a small model for each of many types")
    return [pytest.param(name, marks=() if name in QUICK else slow) for name in cases]


@pytest.mark.parametrize("model_type", table(CASES))
def test_layers_are_seen_as_their_code_has_them(model_type):
    fields, expected = CASES[model_type]
    layers = layers_of(asked(CONFIG_MAPPING[model_type](**fields)))
    for count, pairing, width, base, head_dim, scale, reach in expected:
        kind = [x for x in layers if x.reach == reach and (x.rotation is None) == (pairing is None)]
        assert len(kind) == count
        assert {x.head_dim for x in kind} == {head_dim}
        assert all(x.scale == (scale and pytest.approx(scale, rel=1e-4)) for x in kind)
        for layer in kind if pairing else ():
            assert layer.rotation.pairing == pairing
            assert len(layer.rotation.pairs) == width // 2
            turns = torch.tensor([t / 2**192 for t in Geometric(width, base).turns()])
            expected_angles = 2 * torch.pi * turns.double()
            torch.testing.assert_close(
                layer.rotation.frequencies, expected_angles, rtol=1e-5, atol=1e-9
            )


def test_axes_directions_factors_and_orders_are_seen():
    def rotation(model_type, **fields):
        (layer, *_) = layers_of(asked(CONFIG_MAPPING[model_type](num_hidden_layers=1, **fields)))
        return layer.rotation

    assert rotation("qwen2_vl_text").axes == (0,) * 16 + (1,) * 24 + (2,) * 24
    assert rotation("nanochat").frequencies.max() < 0
    assert rotation("deepseek_v3").reorders
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4,
            "original_max_position_embeddings": 2048}  # fmt: skip
    assert rotation("llama", rope_parameters=yarn).factor == pytest.approx(1.1386, abs=1e-4)
