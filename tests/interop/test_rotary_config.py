"""Configurations read here against the rotary modules that transformers builds from them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interop.conftest import Oracle
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posenc import MultimodalRotary
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config

SIZES = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 7}
PLAIN_MODELS = [
    "llama", "mistral", "qwen2", "qwen3", "gpt_neox", "cohere", "stablelm", "phi", "glm",
]  # fmt: skip
NESTED_MODELS = ["gemma3_text", "gemma3n_text", "modernbert", "olmo3"]
RANDOM = settings(max_examples=40, deadline=None)

BASES = st.sampled_from([1e4, 5e5, 1e6, 1e7])
FACTORS = st.one_of(st.sampled_from([1.0, 2.0, 8.0, 40.0]), st.floats(1.0, 64.0))
TRAINED = st.sampled_from([2048, 8192, 32768])


@st.composite
def ropes(draw: st.DrawFn, pairs: int) -> dict:
    """A random rope dictionary of any type that does not depend on the length."""
    kind = draw(st.sampled_from(["default", "linear", "yarn", "llama3", "longrope"]))
    rope = {"rope_type": kind, "rope_theta": draw(BASES)}
    if kind != "default":
        rope["factor"] = draw(FACTORS)
    if kind in ("yarn", "llama3", "longrope"):
        rope["original_max_position_embeddings"] = draw(TRAINED)
    if kind == "yarn":
        scales = draw(st.sampled_from([(None, None), (1.0, 1.0), (0.707, 1.0), (1.0, None)]))
        rope |= {"beta_fast": draw(st.floats(16, 64)), "beta_slow": draw(st.floats(0.5, 4))}
        rope |= {"mscale": scales[0], "mscale_all_dim": scales[1], "truncate": draw(st.booleans())}
        rope["attention_factor"] = draw(st.sampled_from([None, None, 1.25]))
    if kind == "llama3":
        rope |= {"low_freq_factor": 1.0, "high_freq_factor": draw(st.floats(1.5, 8.0))}
    if kind == "longrope":
        divisors = st.lists(st.floats(1.0, 50.0), min_size=pairs, max_size=pairs)
        rope |= {"short_factor": draw(divisors), "long_factor": draw(divisors)}
    return rope


PAIRS = {
    model: len(Oracle.rotary(rotary_from_config(AutoConfig.for_model(model, **SIZES))).sincos)
    for model in PLAIN_MODELS
}


@RANDOM
@given(st.data())
def test_every_type_in_every_model(oracle, data):
    model = data.draw(st.sampled_from(PLAIN_MODELS))
    rope = data.draw(ropes(PAIRS[model]))
    config = AutoConfig.for_model(
        model, **SIZES, max_position_embeddings=131072, rope_parameters=dict(rope)
    )
    module = oracle.module_of(config)
    oracle.agree(rotary_from_config(config), module)
    # The dictionary that a file would hold says the same, with and without what the model adds.
    oracle.agree(rotary_from_config(config.to_dict()), module)
    written = {"model_type": model, "max_position_embeddings": 131072, **SIZES}
    written["head_dim"] = config.to_dict().get("head_dim")
    oracle.agree(rotary_from_config({**written, "rope_parameters": rope}), module)
    old = as_version_4(rope)
    if model == "gpt_neox":  # its name of the base is the only one that its class reads
        old["rotary_emb_base"] = old.pop("rope_theta")
    oracle.agree(rotary_from_config({**written, **old}), module)


def as_version_4(rope: dict) -> dict:
    """The same dictionary as transformers 4 wrote it."""
    scaling = {key: value for key, value in rope.items() if key not in ("rope_type", "rope_theta")}
    given = None if rope["rope_type"] == "default" else {"type": rope["rope_type"], **scaling}
    return {"rope_theta": rope["rope_theta"], "rope_scaling": given}


@RANDOM
@given(data=st.data(), length=st.integers(1, 10**6))
def test_types_that_depend_on_the_length(oracle, data, length):
    kind = data.draw(st.sampled_from(["dynamic", "longrope"]))
    model = data.draw(st.sampled_from(PLAIN_MODELS))
    trained = data.draw(TRAINED)
    rope = {"rope_type": kind, "rope_theta": data.draw(BASES), "factor": data.draw(FACTORS)}
    if kind == "longrope":
        divisors = st.lists(st.floats(1, 50), min_size=PAIRS[model], max_size=PAIRS[model])
        rope |= {"short_factor": data.draw(divisors), "long_factor": data.draw(divisors)}
        rope["original_max_position_embeddings"] = trained
    config = AutoConfig.for_model(
        model, **SIZES, max_position_embeddings=trained, rope_parameters=rope
    )
    encoding = rotary_from_config(config, length=length)
    inverse, factor = ROPE_INIT_FUNCTIONS[kind](config, seq_len=length)
    module = oracle.module_of(config)
    oracle.agree(rotary_from_config(config), module)  # as transformers starts
    module.inv_freq, module.attention_scaling = inverse, factor
    oracle.agree(encoding, module)


@pytest.mark.slow("random dictionaries of each layer type, built by transformers")
@RANDOM
@given(st.data())
def test_each_layer_type_has_its_own(oracle, data):
    model = data.draw(st.sampled_from(NESTED_MODELS))
    default = AutoConfig.for_model(model, **SIZES)
    pairs = len(oracle.rotary(rotaries_from_config(default)[0]).sincos)
    nested = {kind: data.draw(ropes(pairs)) for kind in ("full_attention", "sliding_attention")}
    for rope in nested.values():
        rope.pop("truncate", None)  # transformers looks for it beside the layer types
    config = AutoConfig.for_model(
        model, **SIZES, max_position_embeddings=131072, rope_parameters=nested
    )
    module = oracle.module_of(config)
    for kind, encoding in zip(config.layer_types, rotaries_from_config(config), strict=True):
        oracle.agree(encoding, module, kind)
    for kind in nested:
        oracle.agree(rotary_from_config(config.to_dict(), layer_type=kind), module, kind)


@pytest.mark.parametrize(
    ("model", "arrangement"),
    [("qwen2_vl_text", "contiguous"), ("qwen2_5_vl_text", "contiguous"),
     ("qwen3_vl_text", "interleaved"), ("qwen3_5_text", "interleaved")],
)  # fmt: skip
def test_sections_of_time_height_and_width(oracle, model, arrangement):
    pairs = 32
    sections = [12, 10, 10]
    sizes = {**SIZES, "head_dim": 2 * pairs}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    config = AutoConfig.for_model(
        model, **sizes, rope_parameters={**rope, "partial_rotary_factor": 1.0}
    )
    encoding = rotary_from_config(config)
    assert isinstance(encoding, MultimodalRotary)
    assert (encoding.sections, encoding.arrangement) == (tuple(sections), arrangement)
    thw = torch.stack([torch.arange(9), torch.arange(9) // 3, torch.arange(9) % 3], dim=-1)
    cos, sin = oracle.module_of(config)(torch.zeros(1), thw.T[:, None])
    table = encoding.table(thw)
    torch.testing.assert_close(table[:, 0], cos[0, :, :pairs], rtol=0, atol=2e-6)
    torch.testing.assert_close(table[:, 1], sin[0, :, :pairs], rtol=0, atol=2e-6)
