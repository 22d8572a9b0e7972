"""What patch measures before it replaces anything, and what it refuses with what it measured."""

import copy

import pytest
import torch
from tests.patched_models.building import IDS, answers, built, loaded
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    Phi3Config,
    PreTrainedConfig,
)
from transformers import logging as transformers_logging

from posenc import MultimodalRotary, Rotary
from posenc.frequencies import Geometric, Linear, YaRN
from posenc.interop.huggingface import patch, register, unregister
from posenc.interop.patching.admission import Unlike

transformers_logging.disable_progress_bar()

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}


def llama(**fields) -> nn.Module:
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, **fields)
    return LlamaForCausalLM._from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("qwen3_moe", "both halves"),
        ("gpt_oss", "half width"),
        ("cohere2", "repeated"),
        ("llama4_text", "complex"),
        ("codegen", "rows of a table"),
    ],
)
def test_the_form_is_found_by_measuring(name, form):
    model = built(name)
    with patch(model) as patched:
        assert {each.form for each in patched.measurements} == {form}
        # Float32 is off by about 6e-8 a radian; a wrong form or pair is off by about 1.
        assert all(0 < each.difference < 0.1 for each in patched.measurements)


@pytest.mark.parametrize("pair", [0, 3, 7])
def test_one_frequency_that_is_off_is_refused_and_the_model_is_left_alone(pair):
    model = llama()
    model.model.rotary_emb.inv_freq[pair] *= 1 + 1e-4
    before, module = answers(model), model.model.rotary_emb
    with pytest.raises(Unlike, match=r"model\.rotary_emb \(LlamaRotaryEmbedding\) is not") as told:
        patch(model)
    assert f"channel {pair} of its" in str(told.value) or f"channel {pair + 8} of" in str(
        told.value
    )
    assert model.model.rotary_emb is module
    assert torch.equal(answers(model), before)


def test_rounding_of_frequencies_is_admitted():
    model = llama()
    model.model.rotary_emb.inv_freq *= 1 + 2.0**-22
    patch(model)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_cast_has_damaged_is_mended(dtype):
    before = answers(llama())
    model = llama()
    frequencies = model.model.rotary_emb.inv_freq
    model.model.rotary_emb.to(dtype).float()
    assert not torch.equal(model.model.rotary_emb.inv_freq, frequencies)
    patch(model)
    torch.testing.assert_close(answers(model), before, rtol=0, atol=2e-5)


def test_a_model_on_the_meta_device_is_patched_before_it_is_filled():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    patch(model)
    model.to_empty(device="cpu").load_state_dict(llama().state_dict())
    torch.testing.assert_close(answers(model), answers(llama()), rtol=0, atol=2e-5)


class Turner(nn.Module):
    """A rotary module of another name and file, whose configuration nobody knows."""

    def __init__(self, config):
        super().__init__()
        base = config.rope_parameters["rope_theta"]
        self.speeds = nn.Buffer(base ** (-torch.arange(0, 16, 2) / 16), persistent=False)

    def forward(self, x, position_ids):
        angles = position_ids[..., None].float() * self.speeds
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


class Mine(PreTrainedConfig):
    model_type = "mine"


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        rope = {"rope_type": "default", "rope_theta": 700.0}
        self.config = Mine(**SIZES, rope_parameters=rope)
        self.turner = Turner(self.config)


def test_a_module_of_any_name_in_a_model_of_any_type():
    model = Whole()
    with patch(model) as patched:
        assert patched.measurements[0].form == "half width"
        far = torch.tensor([[10**9]])
        cos, _ = model.turner(torch.zeros(1, 1, 1), far)
        ours = Rotary(Geometric(16, 700.0)).table(far)
        assert torch.equal(cos, ours[..., 0, :])
    assert isinstance(model.turner, Turner)


def test_a_configuration_that_the_code_does_not_heed_does_not_follow():
    """Turner looks at rope_theta alone: our reading would believe YaRN, and its class does not."""
    model = Whole()
    patched = patch(model, rotary={"rope_type": "yarn", "factor": 4.0})
    assert not patched.config_follows
    assert "Turner differs: at position" in str(patched.why_not)
    assert model.config.rope_parameters == {"rope_type": "default", "rope_theta": 700.0}
    patched.undo()
    assert patch(model, rotary=Geometric(16, 900.0)).config_follows


def test_attention_with_a_table_has_no_longest_position():
    model = built("gptj")
    positions = 10**7 + torch.arange(IDS.shape[1])[None]
    with pytest.raises(RuntimeError, match="out of bounds"):
        answers(model, position_ids=positions)
    # Attention sees differences alone, and angles are exact: near and far are the same.
    with patch(model):
        near, far = answers(model), answers(model, position_ids=positions)
    torch.testing.assert_close(far, near, rtol=0, atol=2e-5)


def test_positions_by_axis_reach_the_axes():
    model = built("qwen3_vl").model.language_model
    axes = torch.stack([torch.arange(12), torch.arange(12) * 3 % 7, torch.arange(12) // 2])[:, None]
    found = []
    for patched in (False, True):
        if patched:
            assert isinstance(patch(model).angles[0].rotaries["all"], MultimodalRotary)
        with torch.no_grad():
            found.append([
                model(IDS, position_ids=ids).last_hidden_state
                for ids in (axes, torch.arange(12)[None])
            ])  # fmt: skip
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-4)
    assert (found[0][0] - found[0][1]).abs().max() > 1e-3


def test_a_tower_of_images_is_left_as_it_is_and_told():
    model = built("qwen3_vl")
    with patch(model, rotary=Geometric(128, 1e6)) as patched:
        assert [m.path for m in patched.measurements] == ["model.language_model.rotary_emb"]
        assert list(patched.left) == ["model.visual.rotary_pos_emb"]
        assert "two coordinates" in patched.left["model.visual.rotary_pos_emb"]


def test_what_cannot_be_read_is_refused_with_the_reason():
    """NanoChat's module gives the usual angles, and its attention turns the other way."""
    with pytest.raises(TypeError, match=r"can be patched.*rotary_emb: .*in the other direction"):
        patch(built("nanochat"))


def test_no_other_part_stands_for_a_language_model_that_is_not_read():
    model = built("nanochat")
    model.turner = Turner(Mine(**SIZES, rope_parameters={"rope_theta": 700.0}))
    model.turner.config = Mine(**SIZES, rope_parameters={"rope_theta": 700.0})
    with pytest.raises(TypeError, match="in the other direction"):
        patch(model, rotary={"rope_type": "yarn", "factor": 4.0})
    assert isinstance(model.turner, Turner)


# Extensions


@pytest.mark.parametrize("length", [None, 2048])
def test_what_depends_on_the_length_is_saved_as_it_is_at_that_length(length, tmp_path):
    model = llama()
    wanted = {"rope_type": "dynamic", "factor": 2.0}
    patched = patch(model, rotary=wanted, length=length)
    assert patched.config_follows
    assert model.config.rope_parameters["rope_type"] == ("longrope" if length else "dynamic")
    inside = answers(model)
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(answers(loaded(model, tmp_path)), inside, rtol=0, atol=2e-5)


def test_a_dictionary_says_what_changes_and_the_model_the_rest():
    model = llama(rope_parameters={"rope_type": "default", "rope_theta": 7e4})
    patched = patch(model, rotary={"type": "yarn", "factor": 4.0})
    own = YaRN(Geometric(16, 7e4), 4.0, 512)
    assert patched.angles[0].rotaries["all"].frequencies == own
    assert patched.config_follows
    assert model.config.rope_parameters["rope_theta"] == 7e4


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"rope_type": "yarn", "factr": 4.0}, "unknown key 'factr'"),
        ({"rope_type": "yarns", "factor": 4.0}, "rope_type is 'yarns'"),
        ({"rope_type": "linear", "factor": "8"}, "factor is '8'"),
        ({"factor": 4.0}, "layers of type factor; this model has all"),
        (Geometric(8), "this model turns 16 of 16 channels"),
        (Rotary(16, pairing="interleaved"), "in pairs of halves"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_model_is_left_alone(wanted, told):
    model = llama()
    module, said = model.model.rotary_emb, copy.deepcopy(model.config.rope_parameters)
    with pytest.raises(ValueError, match=told):
        patch(model, rotary=wanted)
    assert model.model.rotary_emb is module
    assert model.config.rope_parameters == said


def test_dictionaries_by_type_of_layers():
    model = built("gemma3_text")
    said = copy.deepcopy(model.config.rope_parameters)
    with patch(model, rotary={"full_attention": {"rope_type": "linear", "factor": 8.0}}) as patched:
        assert patched.config_follows
        assert isinstance(patched.angles[0].rotaries["full_attention"].frequencies, Linear)
        assert model.config.rope_parameters["full_attention"]["factor"] == 8.0
        assert model.config.rope_parameters["sliding_attention"] == said["sliding_attention"]
    assert model.config.rope_parameters == said


def test_pairs_that_stand_still_are_not_set_turning():
    model = built("gemma4_text")
    with pytest.raises(ValueError, match="a share of its pairs, and the others stand still"):
        patch(model, rotary={"rope_type": "yarn", "factor": 4.0})
    wanted = {"full_attention": {"rope_type": "proportional", "factor": 4.0}}
    with patch(model, rotary=wanted) as patched:
        turns = patched.angles[0].rotaries["full_attention"].frequencies.turns()
        assert 0 in turns
        assert patched.config_follows


@pytest.mark.parametrize("name", ["gpt_neox", "phi", "stablelm"])
def test_heads_that_turn_whole_are_saved_as_such(name, tmp_path):
    """Their classes turn a part by default, so the share must stand in the file."""
    config = copy.deepcopy(built(name).config)
    config.rope_parameters["partial_rotary_factor"] = 1.0
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    width = config.hidden_size // config.num_attention_heads
    assert patch(model, rotary=YaRN(Geometric(width), 4.0, 512)).config_follows
    inside = answers(model)
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(answers(loaded(model, tmp_path)), inside, rtol=0, atol=2e-5)


def test_phi3_knows_no_yarn_and_is_saved_with_its_frequencies(tmp_path):
    model = built("phi3")
    patched = patch(model, rotary={"rope_type": "yarn", "factor": 4.0,
                                   "original_max_position_embeddings": 256})  # fmt: skip
    assert patched.angles[0].rotaries["all"].frequencies.trained_length == 256
    assert patched.config_follows
    assert model.config.rope_parameters["rope_type"] == "longrope"
    inside = answers(model)
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(answers(loaded(model, tmp_path)), inside, rtol=0, atol=2e-5)


def test_the_softmax_scale_follows_where_yarn_changes_it(tmp_path):
    """m(1)² with m(c) = 0.1 c ln 4 + 1 (DeepSeek-V2, section 3.1.4)."""
    model = built("deepseek_v3")
    before, scales = answers(model), [layer.self_attn.scaling for layer in model.model.layers]
    wanted = {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
              "original_max_position_embeddings": 64}  # fmt: skip
    patched = patch(model, rotary=wanted)
    for layer, scale in zip(model.model.layers, scales, strict=True):
        assert layer.self_attn.scaling == pytest.approx(scale * 1.1386294361119891**2)
    assert patched.config_follows
    inside = answers(model)
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(answers(loaded(model, tmp_path)), inside, rtol=0, atol=5e-5)
    patched.undo()
    assert [layer.self_attn.scaling for layer in model.model.layers] == scales
    assert torch.equal(answers(model), before)


def test_phi3_takes_our_rope_types_once_they_are_registered():
    rope = {"rope_type": "posenc_yarn", "rope_theta": 1e4, "factor": 4.0}
    with pytest.raises(Exception, match="type field must be one of"):
        Phi3Config(rope_parameters=dict(rope))
    register()
    try:
        assert Phi3Config(rope_parameters=dict(rope)).rope_parameters["rope_type"] == "posenc_yarn"
        with pytest.raises(Exception, match="unknown key 'factr'"):
            Phi3Config(rope_parameters={**rope, "factr": 4.0})
        with pytest.raises(Exception, match="type field must be one of"):
            Phi3Config(rope_parameters={**rope, "rope_type": "yarn_of_mine"})
    finally:
        unregister()
    with pytest.raises(Exception, match="type field must be one of"):
        Phi3Config(rope_parameters=dict(rope))


@pytest.mark.slow("it compiles a model")
@pytest.mark.compiles
@pytest.mark.parametrize("name", ["llama", "gptj"])
def test_an_extended_model_compiles_whole(name):
    torch._dynamo.reset()
    model = llama() if name == "llama" else built(name)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    patch(model, rotary=yarn)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        got = compiled(IDS, use_cache=False).logits
    torch.testing.assert_close(got, answers(model), rtol=0, atol=2e-5)


def test_a_module_that_several_hold_is_replaced_once():
    model = LlamaModel(LlamaConfig(**SIZES)).eval()
    model.layers[0].turner = model.rotary_emb
    with patch(model) as patched:
        assert model.layers[0].turner is model.rotary_emb
        assert len({id(each) for each in patched.angles}) == 1
    assert model.layers[0].turner is model.rotary_emb
    assert type(model.rotary_emb).__name__ == "LlamaRotaryEmbedding"
