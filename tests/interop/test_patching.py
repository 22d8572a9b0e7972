"""Our rotary encoding inside tiny random models of transformers, and out of them again."""

import copy

import mpmath
import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    Gemma2Config,
    Gemma3TextConfig,
    GPTJConfig,
    GPTNeoXConfig,
    LlamaConfig,
    Ministral3Config,
    MistralConfig,
    Phi3Config,
    PhiConfig,
    Qwen2Config,
    Qwen3Config,
    StableLmConfig,
)

from posenc import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, LongRoPE, YaRN
from posenc.interop.huggingface import (
    patch,
    rotary_from_config,
    temperatures_from_config,
    unpatch,
)
from posenc.interop.patching import ExactAngles

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
    "mistral": MistralConfig(**SIZES, sliding_window=None),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "gpt_neox": GPTNeoXConfig(**{k: v for k, v in SIZES.items() if "key_value" not in k}),
    "gemma2": Gemma2Config(**SIZES, head_dim=16),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=16, sliding_window=8,
                               layer_types=["sliding_attention", "full_attention"]),
    "phi": PhiConfig(**SIZES),
    "phi3": Phi3Config(**SIZES),
    "phi3-long": Phi3Config(**SIZES, original_max_position_embeddings=256, rope_parameters={
        "rope_type": "longrope", "rope_theta": 1e4, **LISTS}),
    "stablelm": StableLmConfig(**SIZES),
}  # fmt: skip

IDS = torch.tensor([[5, 9, 33, 2, 71, 8, 90, 14, 6, 55, 21, 3]])


def built(name: str) -> nn.Module:
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[name])
    config._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.fixture(params=CONFIGS)
def model(request) -> nn.Module:
    return built(request.param)


@torch.no_grad()
def logits(model, **inputs):
    return model(**{"input_ids": IDS, **inputs}).logits


def test_short_positions_give_the_same_logits_and_undo_the_same_bits(model):
    before, keys = logits(model), list(model.state_dict())
    with patch(model) as patched:
        assert len(patched.angles) == 1
        assert patched.config_follows
        inside = logits(model)
        assert list(model.state_dict()) == keys
        assert not list(patched.angles[0].buffers())
    # Angles up to 12 radians: float32 is off by 5e-7, which two layers pass on.
    torch.testing.assert_close(inside, before, rtol=0, atol=2e-5)
    assert torch.equal(logits(model), before)


def test_generation_with_a_cache_is_the_same(model):
    ask = {"input_ids": IDS, "max_new_tokens": 12, "do_sample": False}
    before = model.generate(**ask)
    with patch(model):
        inside = model.generate(**ask)
        again = model.generate(**ask, use_cache=False)
    assert torch.equal(inside, before)
    assert torch.equal(again, before)


def test_decoding_equals_one_pass(model):
    with patch(model), torch.no_grad():
        whole, cache = logits(model), DynamicCache(config=model.config)
        steps = [
            model(IDS[:, i : i + 1], past_key_values=cache, use_cache=True).logits
            for i in range(IDS.shape[1])
        ]
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=0, atol=2e-5)


def test_left_padding_moves_nothing(model):
    padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), IDS], dim=1)
    mask = (torch.arange(padded.shape[1]) >= 4).long()[None]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with patch(model):
        whole = logits(model)
        got = logits(model, input_ids=padded, attention_mask=mask, position_ids=positions)
    torch.testing.assert_close(got[:, 4:], whole, rtol=0, atol=2e-5)


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
    model, positions = built("llama"), start + torch.arange(IDS.shape[1])[None]
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
    assert unpatched > 100 * ours


@pytest.mark.parametrize("name", ["llama", "gemma3", "phi3"])
def test_a_model_in_bfloat16_keeps_its_positions(name):
    model = built(name).bfloat16()
    with patch(model) as patched:
        angles = patched.angles[0]
        positions = torch.tensor([[256, 257, 10**6, 10**6 + 1]])
        kind = None if "all" in angles.rotaries else "full_attention"
        cos, sin = angles(torch.zeros(1, 4, 1, dtype=torch.bfloat16), positions, kind)
        rotary = angles.rotaries[kind or "all"]
        exact = rotary.table(positions, dtype=torch.float64)
        assert cos.dtype == torch.bfloat16
        half = cos.shape[-1] // 2
        assert (cos[..., :half].double() - exact[..., 0, :]).abs().max() <= 2**-9 * 1.3
        assert len(torch.cat([cos, sin], -1)[0].unique(dim=0)) == 4


def test_casts_copies_and_checkpoints(tmp_path):
    model = built("llama")
    patch(model)
    wanted = logits(model)
    assert torch.equal(logits(copy.deepcopy(model)), wanted)
    rotary = model.model.rotary_emb
    before = rotary(torch.zeros(1, 1, 1), torch.tensor([[10**6]]))
    model.bfloat16().float()
    after = model.model.rotary_emb(torch.zeros(1, 1, 1), torch.tensor([[10**6]]))
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    assert not isinstance(loaded.model.rotary_emb, ExactAngles)
    torch.testing.assert_close(logits(loaded), logits(model), rtol=0, atol=2e-5)
    unpatch(model)


EXTENSIONS = {
    "yarn": YaRN(Geometric(16), 4.0, 512),
    "linear": Linear(Geometric(16), 2.0),
    "llama3": Llama3(Geometric(16, 5e5), 8.0, trained_length=128),
    "base": Rotary(Geometric(16, 1e6)),
}


@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_an_extension_is_told_to_the_configuration(extension, tmp_path):
    """Saved and loaded, the model of transformers itself means what we put in."""
    model = built("llama")
    before, said = logits(model), copy.deepcopy(model.config.rope_parameters)
    patched = patch(model, rotary=extension)
    assert patched.config_follows
    inside = logits(model)
    assert (inside - before).abs().max() > 1e-4
    schedule = extension.frequencies if isinstance(extension, Rotary) else extension
    assert rotary_from_config(model.config).frequencies == schedule
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    torch.testing.assert_close(logits(loaded), inside, rtol=0, atol=2e-5)
    patched.undo()
    assert model.config.rope_parameters == said
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("name", ["extended", "llama3.1", "ministral3"])
def test_a_model_that_is_extended_keeps_its_trained_length(name):
    """Not ``max_position_embeddings``, which was extended with it; null says as little as none."""
    model = built(name)
    own = rotary_from_config(model.config).frequencies
    wanted = YaRN(own.of, 8.0, own.trained_length)
    assert own.trained_length != model.config.max_position_embeddings
    for null in ({}, {"original_max_position_embeddings": None, "rope_theta": None}):
        with patch(model, rotary={"rope_type": "yarn", "factor": 8.0, **null}) as patched:
            assert patched.config_follows
            assert rotary_from_config(model.config).frequencies == wanted
            assert next(iter(model.model.rotary_emb.rotaries.values())).frequencies == wanted


def test_what_stretches_from_the_extended_length_is_refused():
    model = built("extended")
    with pytest.raises(ValueError, match=r"from max_position_embeddings, 512, on.*length 128"):
        patch(model, rotary={"rope_type": "dynamic", "factor": 4.0})


OTHER_TYPES = {
    "linear": {"rope_type": "linear", "factor": 2.0},
    "default": {"rope_type": "default"},
    "yarn": {"rope_type": "yarn", "factor": 8.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0},
    "Linear": Linear(Geometric(16, 1e4), 2.0),
    "NTK": NTK(Geometric(16, 1e4), 4.0),
    "YaRN": YaRN(Geometric(16, 1e4), 4.0, 4),
}  # fmt: skip


@pytest.mark.parametrize("extension", OTHER_TYPES.values(), ids=OTHER_TYPES)
def test_the_temperature_of_queries_stays_whatever_extends_the_rotation(extension):
    """Ministral 3 reads it from the rope dictionary whenever it runs."""
    model = built("ministral3")
    keys = ("llama_4_scaling_beta", "original_max_position_embeddings")
    before = [model.config.rope_parameters[key] for key in keys]
    temperatures = repr(temperatures_from_config(model.config))
    with patch(model, rotary=extension) as patched:
        assert patched.config_follows
        assert [model.config.rope_parameters[key] for key in keys] == before
        assert repr(temperatures_from_config(model.config)) == temperatures
        assert logits(model).isfinite().all()


@pytest.mark.parametrize(
    "key", [{"original_max_position_embeddings": 32}, {"llama_4_scaling_beta": 0.5}]
)
def test_a_dictionary_that_would_change_the_temperature_is_refused(key):
    model = built("ministral3")
    before, said = logits(model), copy.deepcopy(model.config.rope_parameters)
    with pytest.raises(ValueError, match=f"{next(iter(key))}.*temperature of its queries"):
        patch(model, rotary={"rope_type": "yarn", "factor": 8.0, **key})
    assert model.config.rope_parameters == said
    assert torch.equal(logits(model), before)


def test_one_layer_type_alone_can_be_extended():
    model = built("gemma3")
    before = logits(model)
    longer = Linear(Geometric(16, 1e6), 8.0)
    with patch(model, rotary={"full_attention": longer}) as patched:
        assert patched.config_follows
        assert rotary_from_config(model.config, layer_type="full_attention").frequencies == longer
        local = rotary_from_config(model.config, layer_type="sliding_attention")
        assert local.frequencies == Geometric(16, 1e4)
        assert not torch.equal(logits(model), before)
    assert torch.equal(logits(model), before)


def test_the_length_is_stated_and_a_long_row_changes_no_short_one():
    """transformers switches LongRoPE by the longest row it has seen; here the caller says."""
    model = built("phi3-long")
    both = torch.cat([IDS, IDS]), torch.stack([torch.arange(12), 400 + torch.arange(12)])
    alone = logits(model)
    theirs = logits(model, input_ids=both[0], position_ids=both[1])[:1]
    assert (theirs - alone).abs().max() > 1e-3
    with patch(model), pytest.raises(ValueError, match="hold for 256 positions"):
        logits(model, input_ids=both[0], position_ids=both[1])
    with patch(model, length=512) as patched:
        ours = logits(model, input_ids=both[0], position_ids=both[1])[:1]
        torch.testing.assert_close(ours, logits(model), rtol=0, atol=2e-5)
        long = LongRoPE(Geometric(16), **{k[:-7]: v for k, v in LISTS.items()},
                        trained_length=256, factor=2.0).at(512)  # fmt: skip
        assert patched.angles[0].rotaries["all"].frequencies == long


def test_a_length_that_is_stated_is_written_into_the_configuration(tmp_path):
    """A model that is loaded would switch by the longest row, and differ."""
    model = built("phi3-long")
    before = copy.deepcopy(model.config.rope_parameters)
    with patch(model, length=512) as patched:
        assert patched.config_follows
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path).eval()
        torch.testing.assert_close(logits(loaded), logits(model), rtol=0, atol=2e-5)
    assert model.config.rope_parameters == before
    with patch(model, length=200) as patched:  # where nothing has switched
        assert patched.config_follows
        assert model.config.rope_parameters == before


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
        torch.testing.assert_close(got, logits(model, position_ids=positions), rtol=0, atol=2e-5)
    assert counter.frame_count == 1


@pytest.mark.slow("several graphs")
@pytest.mark.compiles
def test_a_graph_from_before_knows_of_hooks_that_came_and_went():
    """GPT-J's rows come by hooks, and graphs do not ask whether a module has others by now."""
    config = GPTJConfig(vocab_size=97, n_positions=64, n_embd=32, n_layer=1, n_head=2, rotary_dim=8)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    eager, compiled = copy.deepcopy(model), torch.compile(model, backend="eager")
    before = logits(compiled)
    longer = {"rope_type": "linear", "factor": 4.0}
    for _ in range(2):
        with patch(eager, rotary=longer), patch(model, rotary=longer):
            torch.testing.assert_close(logits(compiled), logits(eager))
            assert not torch.allclose(logits(compiled), before)
        torch.testing.assert_close(logits(compiled), before)


def test_what_cannot_be_patched_is_refused_and_left_alone():
    with pytest.raises(
        TypeError, match=r"Linear has no rotary module that is known here: none that makes"
    ):
        patch(nn.Linear(2, 2))
    model = built("llama")
    before = logits(model)
    with pytest.raises(ValueError, match="this model turns 16 of 16 channels in pairs of halves"):
        patch(model, rotary=Geometric(8))
    with pytest.raises(ValueError, match="pairing 'half'"):
        patch(model, rotary=Rotary(16, pairing="interleaved"))
    with pytest.raises(ValueError, match="layers of type full; this model has all"):
        patch(model, rotary={"full": Geometric(16)})
    with pytest.raises(TypeError, match="rotary is a int"):
        patch(model, rotary=16)
    with pytest.raises(ValueError, match="The model is not patched"):
        unpatch(model)
    patch(model)
    with pytest.raises(ValueError, match="patched already"):
        patch(model)
    unpatch(model)
    assert torch.equal(logits(model), before)
