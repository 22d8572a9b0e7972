"""Exact frequencies under names of our own in the registry of transformers."""

import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc.interop.huggingface import register, rotary_from_config, unregister

DICTIONARIES = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 8.0, "original_max_position_embeddings": 1024},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 1024},
    "longrope": {"short_factor": [1.0] * 16, "long_factor": [float(i + 1) for i in range(16)],
                 "original_max_position_embeddings": 1024},
    "proportional": {"partial_rotary_factor": 0.5},
}  # fmt: skip


@pytest.fixture(autouse=True)
def registered():
    before = dict(ROPE_INIT_FUNCTIONS)
    register()
    yield
    unregister()
    assert before == ROPE_INIT_FUNCTIONS


def config(kind: str, extra: dict) -> LlamaConfig:
    rope = {"rope_type": kind, "rope_theta": 1e4, **extra}
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "max_position_embeddings": 4096}
    return LlamaConfig(**sizes, rope_parameters=rope)


@pytest.mark.parametrize(("kind", "extra"), DICTIONARIES.items(), ids=DICTIONARIES)
def test_each_type_is_its_namesake_computed_exactly(kind, extra):
    ours = LlamaRotaryEmbedding(config(f"posenc_{kind}", extra))
    theirs = LlamaRotaryEmbedding(config(kind, extra))
    length = 4096 if kind == "longrope" else None
    exact = rotary_from_config(config(kind, extra), length=length).frequencies
    wavelengths = torch.tensor(exact.wavelengths(), dtype=torch.float64)
    error = (ours.inv_freq.double() * wavelengths / (2 * torch.pi) - 1).nan_to_num(0.0).abs().max()
    assert error <= 2**-24 * 1.001
    assert ours.attention_scaling == pytest.approx(theirs.attention_scaling, rel=1e-12)
    if kind != "longrope":  # theirs begins with the short factors
        torch.testing.assert_close(ours.inv_freq, theirs.inv_freq, rtol=3e-6, atol=0)


def test_nested_types():
    nested = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "posenc_linear", "rope_theta": 1e6, "factor": 8.0},
    }
    sizes = {"head_dim": 16, "num_hidden_layers": 2, "layer_types": [*nested]}
    module = Gemma3RotaryEmbedding(Gemma3TextConfig(**sizes, rope_parameters=nested))
    assert module.full_attention_inv_freq[0] == 0.125
    assert module.sliding_attention_inv_freq[0] == 1.0


def test_phi3_takes_our_types_too():
    rope = {"rope_type": "posenc_yarn", "rope_theta": 1e4, "factor": 4.0}
    assert Phi3Config(rope_parameters=dict(rope)).rope_parameters["rope_type"] == "posenc_yarn"
    with pytest.raises(Exception, match="unknown key 'factr'"):
        Phi3Config(rope_parameters={**rope, "factr": 4.0})
