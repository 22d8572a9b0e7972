"""Our rotary encoding inside tiny random models of transformers, and out of them again."""

import copy

import mpmath
import pytest
import torch
from tests.patched_models.building import built as typical
from tests.patched_models.building import loaded
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    Ministral3Config,
    Phi3Config,
    PreTrainedConfig,
    Qwen3Config,
)
from transformers import logging as transformers_logging

from posenc import MultimodalRotary, Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, LongRoPE, YaRN
from posenc.interop.huggingface import (
    patch,
    register,
    rotary_from_config,
    temperatures_from_config,
    unpatch,
    unregister,
)
from posenc.interop.patching.admission import Unlike

transformers_logging.disable_progress_bar()

SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
LISTS = {"short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
         "long_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 9.0]}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "llama3.1": LlamaConfig(**SIZES, rope_parameters={
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 128}),
    "extended": Qwen3Config(**SIZES, head_dim=16, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "beta_fast": 16.0,
        "original_max_position_embeddings": 128}),
    "ministral3": Ministral3Config(**SIZES, head_dim=16, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 64.0, "llama_4_scaling_beta": 1.0,
        "original_max_position_embeddings": 8}),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=8,
                               layer_types=["sliding_attention", "full_attention"]),
    "phi3-long": Phi3Config(**SIZES, original_max_position_embeddings=256, rope_parameters={
        "rope_type": "longrope", "rope_theta": 1e4, **LISTS}),
}  # fmt: skip
IDS = torch.tensor([[5, 9, 33, 2, 71, 8, 90, 14, 6, 55, 21, 3]])
YARN = {"rope_type": "yarn", "factor": 4.0}


def built(name: str = "llama") -> nn.Module:
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(config).eval()


@torch.no_grad()
def logits(model, **inputs):
    return model(**{"input_ids": IDS % 32, **inputs}).logits


def near(one, other, atol=2e-5):
    torch.testing.assert_close(one, other, rtol=0, atol=atol)


# What goes on as before


@pytest.mark.parametrize("name", CONFIGS)
def test_the_model_does_what_it_did_and_undoing_gives_the_same_bits(name):
    model = built(name)
    before, keys = logits(model), list(model.state_dict())
    ask = {"input_ids": IDS, "max_new_tokens": 8, "do_sample": False}
    generated = model.generate(**ask)
    padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), IDS % 32], dim=1)
    mask = (torch.arange(padded.shape[1]) >= 4).long()[None]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with patch(model) as patched:
        assert patched.config_follows
        near(logits(model), before)
        assert torch.equal(model.generate(**ask), generated)
        assert torch.equal(model.generate(**ask, use_cache=False), generated)
        given = logits(model, input_ids=padded, attention_mask=mask, position_ids=positions)
        near(given[:, 4:], before)
        assert list(model.state_dict()) == keys
        assert not list(patched.angles[0].buffers())
    assert torch.equal(logits(model), before)


def test_decoding_equals_one_pass():
    model = built("gemma3")
    with patch(model), torch.no_grad():
        whole, cache = logits(model), DynamicCache(config=model.config)
        steps = [
            model(each[:, None] % 32, past_key_values=cache, use_cache=True).logits
            for each in IDS.unbind(1)
        ]
    near(torch.cat(steps, 1), whole)


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_it_learns_as_before(name):
    model, other = built(name), built(name)
    patch(other)
    for each in (model, other):
        each.train()
        each.gradient_checkpointing_enable()
        each(IDS, labels=IDS).loss.backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-3, atol=2e-5)


@pytest.mark.compiles
@pytest.mark.parametrize(
    "name", ["llama", pytest.param("gemma3", marks=pytest.mark.slow("it compiles a model"))]
)
def test_it_compiles_whole_and_once_for_all_positions(name):
    from torch._dynamo.testing import CompileCounter

    model, counter = built(name), CompileCounter()
    patch(model)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for start in (0, 1000, 2**40):
        positions = start + torch.arange(IDS.shape[1])[None]
        got = logits(compiled, position_ids=positions, use_cache=False)
        near(got, logits(model, position_ids=positions))
    assert counter.frame_count == 1


# Exactness


class MultiplePrecision(nn.Module):
    """cos and sin of multiple-precision angles, for the frequencies of a module."""

    def __init__(self, rotary: Rotary):
        super().__init__()
        self.turns = rotary.frequencies.turns()

    def forward(self, x, position_ids, layer_type=None):
        with mpmath.workprec(300):
            unit = 2 * mpmath.pi / mpmath.mpf(2) ** 192
            angles = [[int(p) * t * unit for t in self.turns] for p in position_ids[0]]
            cos, sin = (
                torch.tensor([[[float(f(a)) for a in row] * 2 for row in angles]])
                for f in (mpmath.cos, mpmath.sin)
            )
        return cos.to(x.dtype), sin.to(x.dtype)


@pytest.mark.parametrize(("start", "drift"), [(10**6, 1e-3), (10**7, 1e-2)])
def test_at_long_positions_the_unpatched_model_drifts_and_ours_does_not(start, drift):
    model, positions = built(), start + torch.arange(IDS.shape[1])[None]
    for layer in model.model.layers:  # as sharp as trained attention, or nothing would show
        layer.self_attn.q_proj.weight.data.mul_(20)
        layer.self_attn.k_proj.weight.data.mul_(20)
    exact = copy.deepcopy(model).double()
    exact.model.rotary_emb = MultiplePrecision(rotary_from_config(model.config))
    truth = logits(exact, position_ids=positions)
    unpatched = (logits(model, position_ids=positions) - truth).abs().max().item()
    with patch(model):
        ours = (logits(model, position_ids=positions) - truth).abs().max().item()
    assert unpatched > drift
    assert ours < 1e-5


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_model_in_bfloat16_keeps_its_positions(name):
    model = built(name).bfloat16()
    with patch(model) as patched:
        angles = patched.angles[0]
        positions = torch.tensor([[256, 257, 10**6, 10**6 + 1]])
        kind = None if "all" in angles.rotaries else "full_attention"
        cos, sin = angles(torch.zeros(1, 4, 1, dtype=torch.bfloat16), positions, kind)
        exact = angles.rotaries[kind or "all"].table(positions, dtype=torch.float64)
        half = cos.shape[-1] // 2
        assert (cos[..., :half].double() - exact[..., 0, :]).abs().max() <= 2**-9 * 1.3
        assert len(torch.cat([cos, sin], -1)[0].unique(dim=0)) == 4


def test_no_cast_damages_the_angles():
    model, ask = built(), (torch.zeros(1, 1, 1), torch.tensor([[10**6]]))
    patch(model)
    before = model.model.rotary_emb(*ask)
    model.bfloat16().float()
    assert all(map(torch.equal, model.model.rotary_emb(*ask), before))


# Admission


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
    frequencies = model.model.rotary_emb.inv_freq
    model.model.rotary_emb.to(dtype).float()
    assert not torch.equal(model.model.rotary_emb.inv_freq, frequencies)
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
        return [
            model(IDS % 32, position_ids=ids).last_hidden_state
            for ids in (axes, torch.arange(12)[None])
        ]

    before = states()
    assert isinstance(patch(model).angles[0].rotaries["all"], MultimodalRotary)
    near(states(), before, 1e-4)
    assert (before[0] - before[1]).abs().max() > 1e-3


def test_a_tower_of_images_is_left_as_it_is_and_told():
    with patch(typical("qwen3_vl"), rotary=Geometric(128, 1e6)) as patched:
        assert [m.path for m in patched.measurements] == ["model.language_model.rotary_emb"]
        assert list(patched.left) == ["model.visual.rotary_pos_emb"]


def test_a_language_model_that_is_not_read_is_refused_whatever_else_is_there():
    """NanoChat's module gives the usual angles, and its attention turns the other way."""
    model = typical("nanochat")
    model.turner = Whole().turner
    model.turner.config = Whole().config
    with pytest.raises(TypeError, match="direction"):
        patch(model, rotary=YARN)
    assert isinstance(model.turner, Turner)


def test_a_module_that_several_hold_is_replaced_once():
    model = LlamaModel(copy.deepcopy(CONFIGS["llama"])).eval()
    model.layers[0].turner = model.rotary_emb
    with patch(model) as patched:
        assert model.layers[0].turner is model.rotary_emb
        assert len({id(each) for each in patched.angles}) == 1
    assert type(model.layers[0].turner).__name__ == "LlamaRotaryEmbedding"


# Extensions

EXTENSIONS = {
    "yarn": YaRN(Geometric(16), 4.0, 512),
    "linear": Linear(Geometric(16), 2.0),
    "llama3": Llama3(Geometric(16, 5e5), 8.0, trained_length=128),
    "base": Rotary(Geometric(16, 1e6)),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_is_told_to_the_configuration(name, tmp_path):
    """Saved and loaded, the model of transformers itself means what we put in."""
    model, extension = built(), EXTENSIONS[name]
    before, said = logits(model), copy.deepcopy(model.config.to_dict())
    patched = patch(model, rotary=extension)
    assert patched.config_follows
    inside = logits(model)
    assert (inside - before).abs().max() > 1e-4
    schedule = extension.frequencies if isinstance(extension, Rotary) else extension
    assert rotary_from_config(model.config).frequencies == schedule
    longest = {"yarn": 2048, "linear": 512, "llama3": 1024, "base": 512}[name]
    assert model.config.max_position_embeddings == longest
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)
    patched.undo()
    saved = ("architectures", "dtype", "transformers_version")
    assert {k: v for k, v in model.config.to_dict().items() if k not in saved} == {
        k: v for k, v in said.items() if k not in saved
    }
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("name", ["extended", "llama3.1", "ministral3"])
def test_a_model_that_is_extended_keeps_its_trained_length(name):
    """Not ``max_position_embeddings``, which was extended with it; null says as little as none."""
    model = built(name)
    own = rotary_from_config(model.config).frequencies
    wanted = YaRN(own.of, 8.0, own.trained_length)
    for null in ({}, {"original_max_position_embeddings": None, "rope_theta": None}):
        with patch(model, rotary={"rope_type": "yarn", "factor": 8.0, **null}) as patched:
            assert patched.config_follows
            assert rotary_from_config(model.config).frequencies == wanted
            assert next(iter(model.model.rotary_emb.rotaries.values())).frequencies == wanted


def test_a_dictionary_says_what_changes_and_the_model_the_rest():
    model = LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters={"rope_theta": 7e4})).eval()
    with patch(model, rotary={"type": "yarn", "factor": 4.0}) as patched:
        assert patched.config_follows
        own = YaRN(Geometric(16, 7e4), 4.0, 512)
        assert patched.angles[0].rotaries["all"].frequencies == own
        assert model.config.rope_parameters["rope_theta"] == 7e4


LINEAR = {"rope_type": "linear", "factor": 8.0}


@pytest.mark.parametrize(
    "given", [LINEAR, {"full_attention": LINEAR}, {"full_attention": Linear(Geometric(16, 1e6), 8)}]
)
def test_of_layers_that_differ_one_dictionary_is_for_those_of_the_class(given):
    """As transformers hands ``rope_scaling`` to the full layers of Gemma 3."""
    model = built("gemma3")
    before, said = logits(model), copy.deepcopy(model.config.rope_parameters)
    with patch(model, rotary=given) as patched:
        assert patched.config_follows
        assert "full_attention: Linear × 8" in repr(patched)
        full = rotary_from_config(model.config, layer_type="full_attention").frequencies
        assert full == Linear(Geometric(16, 1e6), 8.0)
        local = rotary_from_config(model.config, layer_type="sliding_attention")
        assert local.frequencies == Geometric(16, 1e4)
        assert model.config.rope_parameters["sliding_attention"] == said["sliding_attention"]
    assert model.config.rope_parameters == said
    assert torch.equal(logits(model), before)


TEMPERED = [
    LINEAR,
    {"rope_type": "default"},
    {"rope_type": "yarn", "factor": 8.0},
    NTK(Geometric(16, 1e4), 4.0),
    YaRN(Geometric(16, 1e4), 4.0, 4),
]


@pytest.mark.parametrize("extension", TEMPERED)
def test_the_temperature_of_queries_stays_whatever_extends_the_rotation(extension):
    """Ministral 3 reads it from the rope dictionary whenever it runs."""
    model = built("ministral3")
    temperatures = repr(temperatures_from_config(model.config))
    with patch(model, rotary=extension) as patched:
        assert patched.config_follows
        assert repr(temperatures_from_config(model.config)) == temperatures


def test_a_length_that_is_stated_holds_and_is_written(tmp_path):
    """transformers switches LongRoPE by the longest row it has seen; here the caller says."""
    model = built("phi3-long")
    before = copy.deepcopy(model.config.rope_parameters)
    both = torch.cat([IDS, IDS]) % 32, torch.stack([torch.arange(12), 400 + torch.arange(12)])
    alone = logits(model)
    theirs = logits(model, input_ids=both[0], position_ids=both[1])[:1]
    assert (theirs - alone).abs().max() > 1e-3
    with patch(model), pytest.raises(ValueError, match="256 positions"):
        logits(model, input_ids=both[0], position_ids=both[1])
    with patch(model, length=512) as patched:
        assert patched.config_follows
        ours = logits(model, input_ids=both[0], position_ids=both[1])[:1]
        near(ours, logits(model))
        long = LongRoPE(Geometric(16), **{k[:-7]: v for k, v in LISTS.items()},
                        trained_length=256, factor=2.0).at(512)  # fmt: skip
        assert patched.angles[0].rotaries["all"].frequencies == long
        model.save_pretrained(tmp_path)
        near(logits(loaded(model, tmp_path)), logits(model))
    assert model.config.rope_parameters == before
    with patch(model, length=200) as patched:  # where nothing has switched
        assert patched.config_follows
        assert model.config.rope_parameters == before


@pytest.mark.parametrize("length", [None, 2048])
def test_what_depends_on_the_length_is_saved_as_it_is_at_that_length(length, tmp_path):
    model = built()
    assert patch(model, rotary={"rope_type": "dynamic", "factor": 2.0}, length=length)
    assert model.config.rope_parameters["rope_type"] == ("longrope" if length else "dynamic")
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)


def test_pairs_that_stand_still_are_not_set_turning():
    model = typical("gemma4_text")
    with pytest.raises(ValueError, match="stands still"):
        patch(model, rotary=YARN)
    wanted = {"full_attention": {"rope_type": "proportional", "factor": 4.0}}
    with patch(model, rotary=wanted) as patched:
        assert 0 in patched.angles[0].rotaries["full_attention"].frequencies.turns()
        assert patched.config_follows


@pytest.mark.parametrize("name", ["gpt_neox", "phi", "stablelm"])
def test_heads_that_turn_whole_are_saved_as_such(name, tmp_path):
    """Their classes rotate a part by default, so the share must stand in the file."""
    config = copy.deepcopy(typical(name).config)
    config.rope_parameters["partial_rotary_factor"] = 1.0
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    width = config.hidden_size // config.num_attention_heads
    assert patch(model, rotary=YaRN(Geometric(width), 4.0, 512)).config_follows
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)


def test_phi3_knows_no_yarn_and_is_saved_with_its_frequencies(tmp_path):
    model = typical("phi3")
    patched = patch(model, rotary=YARN | {"original_max_position_embeddings": 256})
    assert patched.angles[0].rotaries["all"].frequencies.trained_length == 256
    assert patched.config_follows
    assert model.config.rope_parameters["rope_type"] == "longrope"
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)


def test_the_softmax_scale_follows_where_yarn_changes_it(tmp_path):
    """m(1)² with m(c) = 0.1 c ln 4 + 1 (DeepSeek-V2, section 3.1.4)."""
    model = typical("deepseek_v3")
    scales = [layer.self_attn.scaling for layer in model.model.layers]
    wanted = {"mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 64}
    patched = patch(model, rotary=YARN | wanted)
    for layer, scale in zip(model.model.layers, scales, strict=True):
        assert layer.self_attn.scaling == pytest.approx(scale * 1.1386294361119891**2)
    assert patched.config_follows
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside, 5e-5)
    patched.undo()
    assert [layer.self_attn.scaling for layer in model.model.layers] == scales


def test_attention_with_a_table_gets_as_many_rows_as_it_needs():
    model = typical("gptj")
    rows = len(model.transformer.h[0].attn.embed_positions)
    with patch(model):
        assert len(model.transformer.h[0].attn.embed_positions) == rows
    with patch(model, rotary=YARN | {"original_max_position_embeddings": rows}):
        assert len(model.transformer.h[0].attn.embed_positions) == 4 * rows
    positions = 2 * rows + torch.arange(IDS.shape[1])[None]
    with patch(model, length=3 * rows):  # attention sees differences alone
        near(logits(model, position_ids=positions), logits(model))


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


REFUSED = [
    ("llama", {"rope_type": "yarn", "factr": 4.0}, "factr"),
    ("llama", {"rope_type": "yarns", "factor": 4.0}, "yarns"),
    ("llama", {"rope_type": "linear", "factor": "8"}, "'8'"),
    ("llama", {"rope_type": "yarn"}, "without a factor"),
    ("llama", {"factor": 4.0}, "layers of type factor"),
    ("llama", {"full": Geometric(16)}, "layers of type full"),
    ("llama", {}, "empty"),
    ("llama", Geometric(8), "16 of 16"),
    ("llama", Rotary(16, pairing="interleaved"), "'half'"),
    ("llama", 16, "int"),
    ("extended", {"rope_type": "dynamic", "factor": 4.0}, "128"),
    ("ministral3", YARN | {"original_max_position_embeddings": 32}, "temperature"),
    ("ministral3", YARN | {"llama_4_scaling_beta": 0.5}, "temperature"),
]


@pytest.mark.parametrize(("name", "wanted", "noun"), REFUSED)
def test_what_does_not_fit_is_refused_and_the_model_is_left_alone(name, wanted, noun):
    model = built(name)
    module, said = model.model.rotary_emb, copy.deepcopy(model.config.rope_parameters)
    with pytest.raises((ValueError, TypeError), match=noun):
        patch(model, rotary=wanted)
    assert model.model.rotary_emb is module
    assert model.config.rope_parameters == said


def test_what_cannot_be_patched_or_is_already():
    with pytest.raises(TypeError, match="Linear"):
        patch(nn.Linear(2, 2))
    model = built()
    with pytest.raises(ValueError, match="not patched"):
        unpatch(model)
    patch(model)
    with pytest.raises(ValueError, match="patched already"):
        patch(model)
