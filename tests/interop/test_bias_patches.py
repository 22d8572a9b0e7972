"""Biases of models by ours: tables that learn, undoing, refusals, graphs."""

import copy
import pickle

import pytest
import torch
from tests.patched_models.biased import (
    CLOSE,
    DECODERS,
    ENDS,
    FALCON,
    IDS,
    LENGTH,
    PADDED,
    REAL,
    T5,
    both,
    built,
    inputs,
    pairs,
)
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    FalconConfig,
    FalconForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LongT5Config,
    LongT5ForConditionalGeneration,
    StaticCache,
)

from posenc import ALiBi
from posenc.backends import attention as ours
from posenc.interop import alibi_models, attention
from posenc.interop.huggingface import patch_biases, unpatch_biases

# T5's table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t5", "umt5"])
def test_the_table_receives_its_gradients(name):
    def run(model):
        model.zero_grad()
        with torch.enable_grad():
            model(**inputs(name), labels=IDS[:, :-13].contiguous()).loss.backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if "relative" in n}

    theirs, by_ours = both(name, run)
    assert len(theirs) == (2 if name == "t5" else 4)
    for key, grad in theirs.items():
        assert grad.abs().max() > 0
        torch.testing.assert_close(by_ours[key], grad, rtol=1e-4, atol=1e-7)


def test_the_table_is_the_one_that_the_model_has_now():
    model = copy.deepcopy(built("t5"))
    with torch.no_grad(), patch_biases(model):
        table = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
        table.weight = torch.nn.Parameter(torch.zeros_like(table.weight))
        by_ours = model(**inputs("t5")).logits
        wide = copy.deepcopy(model).double()(**inputs("t5")).logits
    with torch.no_grad():
        torch.testing.assert_close(by_ours, model(**inputs("t5")).logits, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(wide.float(), by_ours, rtol=2e-5, atol=2e-5)


# What attention is asked for ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon", "t5", "umt5"])
def test_no_matrix_of_a_bias_is_made(name, monkeypatch):
    """Attention is told encodings, and nothing of size queries × keys but queries and keys."""
    asked = []
    with torch.no_grad(), patch_biases(built(name)) as patched:
        spy = lambda *a, **k: asked.append(k) or ours(*a, **k)  # noqa: E731
        monkeypatch.setattr(attention, "attention", spy)  # past what patching itself measures
        built(name)(**inputs(name))
    found = [n["positional"].scores[0] for n in asked if "positional" in n]
    assert len(found) == (2 if name in DECODERS else 4)
    assert {id(bias) for bias in found} == {id(bias) for bias in patched.biases}
    assert not any("attn_mask" in named for named in asked)
    cross = [named for named in asked if "positional" not in named]
    assert len(cross) == (0 if name in DECODERS else 2)


# Undoing and saving -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon", "t5"])
def test_nothing_is_left_of_an_undone_patch(name, tmp_path):
    model = built(name)
    before = [dict(vars(module)) for module in model.modules()]
    implementation, keys = model.config._attn_implementation, list(model.state_dict())
    with patch_biases(model):
        assert list(model.state_dict()) == keys
        assert model.config._attn_implementation == "posenc"
        model.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="patched already"):
            patch_biases(model)
        with pytest.raises(ValueError, match="weights"):  # a copy, for transformers leaves hooks
            copy.deepcopy(model)(**inputs(name), output_attentions=True)
    assert [dict(vars(module)) for module in model.modules()] == before
    assert model.config._attn_implementation == implementation
    loaded = type(model).from_pretrained(tmp_path).eval()
    assert loaded.config._attn_implementation != "posenc"
    with pytest.raises(ValueError, match="nothing to undo"):
        unpatch_biases(model)


def test_copies_are_undone_by_themselves():
    model = copy.deepcopy(built("t5"))
    with torch.no_grad():
        plain = model(**inputs("t5")).logits
        patch_biases(model)
        theirs = model(**inputs("t5")).logits
        other = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        unpatch_biases(model)
        assert torch.equal(other(**inputs("t5")).logits, theirs)
        unpatch_biases(other)
        assert torch.equal(other(**inputs("t5")).logits, plain)


# What is refused ----------------------------------------------------------------------------------


def test_eager_falcon_whose_bias_counts_twice_is_refused():
    """transformers' eager attention is off its own sdpa by the bias, which its mask holds too."""
    once = built("falcon")
    model = FalconForCausalLM(FalconConfig(**{**FALCON, "attn_implementation": "eager"}, **ENDS))
    model.load_state_dict(once.state_dict())
    with torch.no_grad():
        assert (model.eval()(IDS).logits - once(IDS).logits).abs().max() > 1e-3
    with pytest.raises(ValueError, match="twice"):
        patch_biases(model)


TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
BLOOM = {"hidden_size": 16, "n_layer": 1, "n_head": 2, "vocab_size": 9}
REFUSED = [
    (LongT5ForConditionalGeneration, LongT5Config(**T5), "LongT5LocalAttention"),
    (LlamaForCausalLM, LlamaConfig(intermediate_size=16, **TINY), "LlamaForCausalLM"),
]


@pytest.mark.parametrize(("kind", "config", "noun"), REFUSED)
def test_other_models_are_refused_with_a_reason(kind, config, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        patch_biases(kind(config))


def test_a_bias_that_measures_otherwise_is_refused(monkeypatch):
    """Each of the three measurements finds its fault, and leaves the model as it was."""
    model = built("bloom")
    monkeypatch.setattr(alibi_models, "_exact", lambda layer, kind: ALiBi(6, slopes="geometric"))
    with pytest.raises(ValueError, match="adds something else than ALiBi"):
        patch_biases(model)
    monkeypatch.undo()
    with monkeypatch.context() as patched:
        patched.setattr(model.transformer.h[0].self_attention, "inv_norm_factor", 0.5)
        stranger = type(model.transformer.h[0].self_attention)
        own = stranger.forward
        patched.setattr(
            stranger, "forward", lambda self, *a, **k: (own(self, *a, **k)[0] * 1.01, None)
        )
        with pytest.raises(ValueError, match="gives something else with our bias"):
            patch_biases(model)
    pair = built("t5")
    layer = pair.decoder.block[0].layer[0].SelfAttention
    with monkeypatch.context() as patched:
        patched.setattr(layer, "is_decoder", False)  # it says one thing ...
        bucket = type(layer)._relative_position_bucket
        patched.setattr(
            type(layer),
            "_relative_position_bucket",
            staticmethod(lambda places, **_: bucket(places, bidirectional=False)),
        )  # ... and does another
        with pytest.raises(ValueError, match="has another bucket than T5Bias"):
            patch_biases(pair)
    assert "posenc_biases" not in vars(model) | vars(pair)
    assert layer.relative_attention_bias.weight.requires_grad
    assert layer.relative_attention_bias.weight.shape == (32, 4)


@pytest.mark.slow("two models are compiled whole")
@pytest.mark.compiles("two models are compiled whole")
@pytest.mark.parametrize("name", ["bloom", "t5"])
def test_patched_models_compile_whole(name):
    torch._dynamo.reset()
    with torch.no_grad(), patch_biases(built(name)):
        expected = built(name)(**inputs(name), use_cache=False).logits
        compiled = torch.compile(built(name), backend="eager", fullgraph=True)
        found = compiled(**inputs(name), use_cache=False).logits
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.compiles
@pytest.mark.parametrize(
    "mask",
    [pytest.param(None, marks=pytest.mark.slow("a graph is made for each")), REAL],
    ids=["whole", "padded"],
)
def test_a_drawn_mask_hides_from_mpt_what_it_hides_from_others(mask):
    """It makes a boolean of its mask, in which true hides a key; graphs draw theirs."""
    torch.compiler.reset()
    kept = slice(None) if mask is None else mask.bool()
    model = built("mpt")
    with torch.no_grad():
        theirs = model(**inputs("mpt", mask), use_cache=False).logits
        with patch_biases(model):
            compiled = torch.compile(model, backend="eager")
            found = compiled(**inputs("mpt", mask), use_cache=False).logits
    torch.testing.assert_close(found[kept], theirs[kept], **CLOSE)


def compiled(model, **given):
    torch.compiler.reset()
    return torch.compile(model, backend="eager")(**given)


@torch.no_grad()
@pytest.mark.compiles
@pairs
@pytest.mark.parametrize(
    "drawn", [pytest.param("in a graph", marks=pytest.mark.slow("graphs of two steps")), "given"]
)
def test_a_static_cache_with_room_behind_a_drawn_mask_counts_distances_from_its_start(name, drawn):
    """Nothing but the model says where its queries stand, and they are not the last of the keys."""

    def run(model):
        kind = model.config.get_text_config(decoder=True)
        given = inputs(name)
        ids, room = given.pop("decoder_input_ids"), LENGTH
        cache = EncoderDecoderCache(StaticCache(config=kind, max_cache_len=room), DynamicCache())
        found = []
        for part in (ids[:, :9], ids[:, 9:12]):
            begun = 9 if found else 0
            seen = torch.arange(room) <= begun + torch.arange(part.shape[1])[:, None]
            given |= {"decoder_input_ids": part, "past_key_values": cache}
            if drawn == "given":
                hidden = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
                found.append(model(**given, decoder_attention_mask=hidden).logits)
            else:
                found.append(compiled(model, **given).logits)
        return torch.cat(found, 1)

    theirs, by_ours = both(name, run)
    torch.testing.assert_close(by_ours, theirs, **CLOSE)


@torch.no_grad()
@pytest.mark.compiles
@pytest.mark.parametrize(
    "name", ["bloom", pytest.param("falcon", marks=pytest.mark.slow("more of its kind"))]
)
@pytest.mark.parametrize("cached", [False, True])
def test_distances_in_a_graph_leave_out_padding_between_tokens_as_the_model_does(name, cached):
    model, real = built(name), torch.ones_like(IDS)
    real[0, 20:60], real[1, :PADDED] = 0, 0
    given = inputs(name, real)
    if cached:
        given["past_key_values"] = StaticCache(config=model.config, max_cache_len=LENGTH + 10)
        given["attention_mask"] = torch.nn.functional.pad(real, (0, 10))
    theirs = model(**inputs(name, real)).logits
    with patch_biases(model):
        found = compiled(model, **given).logits
    torch.testing.assert_close(found[real.bool()], theirs[real.bool()], **CLOSE)
