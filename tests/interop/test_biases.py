"""What models with ALiBi or T5's biases give stays when these are ours."""

import copy

import pytest
import torch
import transformers as tf
from tests.patched_models.biased import (
    CLOSE,
    DECODERS,
    HOLES,
    IDS,
    LENGTH,
    MODELS,
    REAL,
    T5,
    agree,
    both,
    built,
    decoders,
    inputs,
    pairs,
    some,
)

from posenc.backends import attention as ours
from posenc.interop import attention
from posenc.interop.huggingface import patch_biases, unpatch_biases

MASKS = {"whole": None, "padded": REAL, "with holes": HOLES}


@pytest.mark.parametrize("name", some(MODELS, ("bloom", "mpt", "falcon", "t5", "umt5")))
@pytest.mark.parametrize("mask", MASKS)
def test_logits_stay(name, mask):
    """Bloom measures distances in real tokens, MPT and T5 in places of the row."""
    named = inputs(name, MASKS[mask])
    kept = MASKS[mask] if name in DECODERS else None
    agree(name, lambda model: model(**named).logits, kept)


@decoders
def test_steps_with_a_cache_stay(name):
    def run(model):
        cache, found = tf.DynamicCache(config=model.config), []
        for begin, end in ((0, 140), (140, 145), (145, 146)):
            named = {"past_key_values": cache, "attention_mask": REAL[:, :end]}
            found.append(model(IDS[:, begin:end], **named).logits[:, -1])
        return torch.stack(found)

    agree(name, run)


@pytest.mark.parametrize("name", some([n for n in MODELS if n != "pop2piano"], ("mpt", "t5")))
def test_the_same_is_generated(name):
    def run(model, **cache):
        named = {"attention_mask": REAL, "max_new_tokens": 4, "do_sample": False}
        return model.generate(IDS, **named, **cache)

    theirs, by_ours = both(name, run)
    assert torch.equal(by_ours, theirs)
    with patch_biases(built(name)):
        assert torch.equal(run(built(name), cache_implementation="static"), theirs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["bloom", "falcon", "mpt"])
def test_a_query_that_sees_later_keys_has_the_models_bias_for_them(name, mask, monkeypatch):
    """Theirs rises with the number of the key, on both sides of the query."""
    if name == "mpt" and MASKS[mask] is None:
        return  # transformers makes no mask then, and fails
    monkeypatch.setattr(built(name).config, "is_causal", False, raising=False)
    named = inputs(name, MASKS[mask])
    agree(name, lambda model: model(**named, use_cache=False).logits, MASKS[mask])


def test_a_mask_of_a_prefix_that_sees_itself_is_honored_by_mpt():
    seen = torch.ones(LENGTH, LENGTH).bool().tril()
    seen[:50, :50] = True
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    agree("mpt", lambda model: model(IDS, attention_mask=mask).logits)


def test_the_bias_of_falcon_is_no_longer_rounded():
    """Its own is bfloat16: at 4999 · 2⁻² steps are 8, so each of two keys is 4 off; over √8."""
    with patch_biases(built("falcon")) as patched:
        assert 0.5 < patched.own_error <= 8 / 8**0.5
        assert patched.biases[0].slopes[0] == 2.0**-2 / 8**0.5
    with patch_biases(built("bloom")) as patched:
        assert patched.own_error < 1e-3


@pytest.mark.parametrize(
    ("name", "heads"),  # Bloom 560M and 176B; MPT 30B; Falcon RW 7B
    [("bloom", 16), ("bloom", 112), ("mpt", 64), ("falcon", 64)],
)
def test_models_of_published_head_counts_are_taken(name, heads):
    """Bloom raises a rounded base to the power of a head's number: more heads, more rounding."""
    narrow = {"d_model": 2 * heads, "n_layers": 1, "n_heads": heads} if name == "mpt" else {
        "hidden_size": 2 * heads, "n_layer": 1, "n_head": heads, "num_hidden_layers": 1,
        "num_attention_heads": heads}  # fmt: skip
    config = DECODERS[name]
    model = type(built(name))(type(config)(**config.to_dict() | narrow)).eval()
    with torch.no_grad():
        theirs = model(IDS[:1]).logits
        with patch_biases(model) as patched:
            assert patched.biases[0].heads == heads
            if name != "falcon":  # which rounds its slopes to bfloat16, and far keys with them
                torch.testing.assert_close(model(IDS[:1]).logits, theirs, **CLOSE)


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


@torch.no_grad()
def test_the_table_is_the_one_that_the_model_has_now():
    model = copy.deepcopy(built("t5"))
    with patch_biases(model):
        table = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
        table.weight = torch.nn.Parameter(torch.zeros_like(table.weight))
        by_ours = model(**inputs("t5")).logits
        wide = copy.deepcopy(model).double()(**inputs("t5")).logits
    torch.testing.assert_close(by_ours, model(**inputs("t5")).logits, **CLOSE)
    torch.testing.assert_close(wide.float(), by_ours, **CLOSE)


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
    assert len(asked) - len(found) == (0 if name in DECODERS else 2)  # cross-attention


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon", "t5"])
def test_nothing_is_left_of_an_undone_patch(name, tmp_path):
    model = built(name)
    before = [dict(vars(module)) for module in model.modules()]
    implementation, keys = model.config._attn_implementation, list(model.state_dict())
    with patch_biases(model):
        assert list(model.state_dict()) == keys
        model.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="patched already"):
            patch_biases(model)
        with pytest.raises(ValueError, match="weights"):  # a copy, for transformers leaves hooks
            copy.deepcopy(model)(**inputs(name), output_attentions=True)
    assert [dict(vars(module)) for module in model.modules()] == before
    assert model.config._attn_implementation == implementation
    assert type(model).from_pretrained(tmp_path).config._attn_implementation != "posenc"
    with pytest.raises(ValueError, match="nothing to undo"):
        unpatch_biases(model)


def test_a_model_that_attends_in_blocks_is_refused():
    with pytest.raises(TypeError, match="LongT5"):
        patch_biases(tf.LongT5ForConditionalGeneration(tf.LongT5Config(**T5)))


def compiled(model, **given):
    torch.compiler.reset()
    return torch.compile(model, backend="eager")(**given)


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
        ids, static = given.pop("decoder_input_ids"), tf.StaticCache(kind, max_cache_len=LENGTH)
        given["past_key_values"] = tf.EncoderDecoderCache(static, tf.DynamicCache())
        found = []
        for begun, part in ((0, ids[:, :9]), (9, ids[:, 9:12])):
            seen = torch.arange(LENGTH) <= begun + torch.arange(part.shape[1])[:, None]
            if drawn == "given":
                hidden = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
                given["decoder_attention_mask"] = hidden
            asked = model if drawn == "given" else lambda **named: compiled(model, **named)
            found.append(asked(decoder_input_ids=part, **given).logits)
        return torch.cat(found, 1)

    agree(name, run)


@torch.no_grad()
@pytest.mark.compiles
@pytest.mark.parametrize(
    "name", ["bloom", pytest.param("falcon", marks=pytest.mark.slow("more of its kind"))]
)
@pytest.mark.parametrize("cached", [False, True])
def test_distances_in_a_graph_leave_out_padding_between_tokens_as_the_model_does(name, cached):
    model, given = built(name), inputs(name, HOLES)
    theirs = model(**given).logits
    if cached:
        given["past_key_values"] = tf.StaticCache(config=model.config, max_cache_len=LENGTH + 10)
        given["attention_mask"] = torch.nn.functional.pad(HOLES, (0, 10))
    with patch_biases(model):
        found = compiled(model, **given).logits
    torch.testing.assert_close(found[HOLES.bool()], theirs[HOLES.bool()], **CLOSE)
