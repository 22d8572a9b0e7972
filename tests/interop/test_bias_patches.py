"""Biases of models by ours: tables that learn, undoing, refusals, graphs."""

import copy

import pytest
import torch
from tests.patched_models.biased import (
    CLOSE,
    DECODERS,
    IDS,
    LENGTH,
    PADDED,
    T5,
    both,
    built,
    inputs,
    pairs,
)
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    LlamaConfig,
    LlamaForCausalLM,
    LongT5Config,
    LongT5ForConditionalGeneration,
    StaticCache,
)

from posenc.backends import attention as ours
from posenc.interop import attention
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


# What is refused ----------------------------------------------------------------------------------


TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
REFUSED = [
    (LongT5ForConditionalGeneration, LongT5Config(**T5), "LongT5LocalAttention"),
    (LlamaForCausalLM, LlamaConfig(intermediate_size=16, **TINY), "LlamaForCausalLM"),
]


@pytest.mark.parametrize(("kind", "config", "noun"), REFUSED)
def test_other_models_are_refused_with_a_reason(kind, config, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        patch_biases(kind(config))


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
