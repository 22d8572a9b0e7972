"""What patch measures before it replaces anything, and what it refuses."""

import copy

import pytest
import torch
from tests.patched_models.building import built as typical
from tests.patched_models.small import CONFIGS, IDS, SIZES, YARN, built, logits, near
from torch import nn
from transformers import LlamaForCausalLM, PreTrainedConfig

from posenc import MultimodalRotary, Rotary
from posenc.frequencies import Geometric
from posenc.interop.huggingface import patch, unpatch
from posenc.interop.patching.admission import Unlike


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
    with patch(typical(name)) as patched:
        assert {each.form for each in patched.measurements} == {form}
        # Float32 is off by about 6e-8 a radian; a wrong form or pair is off by about 1.
        assert all(0 < each.difference < 0.1 for each in patched.measurements)


@pytest.mark.parametrize("pair", [0, 3, 7])
def test_one_frequency_that_is_off_is_refused_and_the_model_is_left_alone(pair):
    model = built()
    model.model.rotary_emb.inv_freq[pair] *= 1 + 1e-4
    before, module = logits(model), model.model.rotary_emb
    with pytest.raises(Unlike, match=rf"channel ({pair}|{pair + 8}) of"):
        patch(model)
    assert model.model.rotary_emb is module
    assert torch.equal(logits(model), before)


def test_rounding_of_frequencies_is_admitted():
    model = built()
    model.model.rotary_emb.inv_freq *= 1 + 2.0**-22
    patch(model)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_cast_has_damaged_is_mended(dtype):
    model, before = built(), logits(built())
    model.model.rotary_emb.to(dtype).float()
    patch(model)
    near(logits(model), before)


def test_a_model_on_the_meta_device_is_patched_before_it_is_filled():
    with torch.device("meta"):
        model = LlamaForCausalLM(copy.deepcopy(CONFIGS["llama"])).eval()
    patch(model)
    model.to_empty(device="cpu").load_state_dict(built().state_dict())
    near(logits(model), logits(built()))


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
        self.config = Mine(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 700.0})
        self.turner = Turner(self.config)


def test_a_module_of_any_name_in_a_model_of_any_type():
    model = Whole()
    with patch(model) as patched:
        assert patched.measurements[0].form == "half width"
        far = torch.tensor([[10**9]])
        ours = Rotary(Geometric(16, 700.0)).table(far)
        assert torch.equal(model.turner(torch.zeros(1, 1, 1), far)[0], ours[..., 0, :])
    assert isinstance(model.turner, Turner)


def test_a_configuration_that_the_code_does_not_heed_does_not_follow():
    model = Whole()  # it looks at rope_theta alone
    patched = patch(model, rotary=YARN)
    assert "Turner" in str(patched.why_not)
    assert model.config.rope_parameters == {"rope_type": "default", "rope_theta": 700.0}
    patched.undo()
    assert patch(model, rotary=Geometric(16, 900.0)).config_follows


def test_positions_by_axis_reach_the_axes():
    model = typical("qwen3_vl").model.language_model
    axes = torch.stack([torch.arange(12), torch.arange(12) * 3 % 7, torch.arange(12) // 2])[:, None]

    @torch.no_grad()
    def states():
        both = axes, torch.arange(12)[None]
        return [model(IDS % 32, position_ids=ids).last_hidden_state for ids in both]

    before = states()
    assert isinstance(patch(model).angles[0].rotaries["all"], MultimodalRotary)
    near(states(), before, 1e-4)
    assert (before[0] - before[1]).abs().max() > 1e-3


def test_a_tower_of_images_is_left_as_it_is_and_told():
    with patch(typical("qwen3_vl"), rotary=Geometric(128, 1e6)) as patched:
        assert [m.path for m in patched.measurements] == ["model.language_model.rotary_emb"]
        assert list(patched.left) == ["model.visual.rotary_pos_emb"]


def test_what_cannot_be_patched_or_is_already():
    with pytest.raises(TypeError, match="Linear"):
        patch(nn.Linear(2, 2))
    model = built()
    with pytest.raises(ValueError, match="not patched"):
        unpatch(model)
    patch(model)
    with pytest.raises(ValueError, match="patched already"):
        patch(model)
