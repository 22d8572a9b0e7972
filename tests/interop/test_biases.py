"""ALiBi and T5's biases of tiny random models by ours, and by their own again."""

import copy
import functools
import pickle

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    EncoderDecoderCache,
    FalconConfig,
    FalconForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LongT5Config,
    LongT5ForConditionalGeneration,
    MptConfig,
    MptForCausalLM,
    MT5Config,
    MT5ForConditionalGeneration,
    Pop2PianoConfig,
    Pop2PianoForConditionalGeneration,
    StaticCache,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from posenc import ALiBi
from posenc.backends import attention as ours
from posenc.interop import alibi_models, attention
from posenc.interop.huggingface import patch_biases, unpatch_biases

# So long that the strided backend serves; a length below it would take a matrix.
LENGTH, PADDED = 150, 37
IDS = torch.randint(2, 97, (2, LENGTH), generator=torch.Generator().manual_seed(0))
REAL = torch.ones_like(IDS)
REAL[0, :PADDED] = 0
CLOSE = {"rtol": 2e-5, "atol": 2e-6}

ENDS = {"pad_token_id": 0, "eos_token_id": None}
FALCON = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "alibi": True, "attn_implementation": "sdpa"}  # fmt: skip
DECODERS = {
    "bloom": (BloomForCausalLM,
              BloomConfig(vocab_size=97, hidden_size=48, n_layer=2, n_head=6, **ENDS)),
    "mpt": (MptForCausalLM,
            MptConfig(vocab_size=97, d_model=48, n_layers=2, n_heads=6, max_seq_len=256, **ENDS)),
    "falcon": (FalconForCausalLM, FalconConfig(**FALCON, **ENDS)),
    "falcon, grouped": (FalconForCausalLM, FalconConfig(
        **FALCON, **ENDS, new_decoder_architecture=True, num_kv_heads=2)),
}  # fmt: skip
T5 = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4,
      "num_decoder_layers": 2, "pad_token_id": 0, "decoder_start_token_id": 0,
      "eos_token_id": 1}  # fmt: skip
FEW = {"num_experts": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}
PAIRS = {
    "t5": (T5ForConditionalGeneration, T5Config(**T5)),
    "umt5": (UMT5ForConditionalGeneration, UMT5Config(**T5, relative_attention_num_buckets=20)),
    "mt5": (MT5ForConditionalGeneration, MT5Config(**T5)),
    "switch": (SwitchTransformersForConditionalGeneration,
               SwitchTransformersConfig(**T5, **FEW)),
    "pop2piano": (Pop2PianoForConditionalGeneration, Pop2PianoConfig(**T5)),
}  # fmt: skip
MODELS = DECODERS | PAIRS


def some(names, kept):
    return [n if n in kept else pytest.param(n, marks=pytest.mark.slow("more of its kind"))
            for n in names]  # fmt: skip


decoders = pytest.mark.parametrize("name", some(DECODERS, ("bloom", "mpt", "falcon")))
pairs = pytest.mark.parametrize("name", some(PAIRS, ("t5",)))


@functools.cache
def built(name: str):
    torch.manual_seed(0)
    kind, config = MODELS[name]
    model = kind(copy.deepcopy(config)).eval()
    for module in model.modules():
        if hasattr(module, "relative_attention_bias"):  # buckets that nobody could confuse
            torch.nn.init.normal_(module.relative_attention_bias.weight)
    return model


@torch.no_grad()
def both(name, run):
    """What ``run`` makes of the model by its own bias, and by ours."""
    model = built(name)
    theirs = run(model)
    with patch_biases(model):
        return theirs, run(model)


def inputs(name, mask=None):
    if name == "pop2piano":  # its tokens are sounds
        return {"inputs_embeds": built(name).shared(IDS), "attention_mask": mask,
                "decoder_input_ids": IDS[:, :-13]}  # fmt: skip
    found = {"input_ids": IDS, "attention_mask": mask}
    return found if name in DECODERS else found | {"decoder_input_ids": IDS[:, :-13]}


# What models give stays ---------------------------------------------------------------------------

HOLES = REAL.clone()
HOLES[1, 20:60] = 0
MASKS = {"whole": None, "padded": REAL, "with holes": HOLES}


@pytest.mark.parametrize("name", some(MODELS, ("bloom", "mpt", "falcon", "t5", "umt5")))
@pytest.mark.parametrize("mask", MASKS)
def test_logits_stay(name, mask):
    """Bloom measures distances in real tokens, MPT and T5 in places of the row."""
    named = inputs(name, MASKS[mask])
    theirs, by_ours = both(name, lambda model: model(**named).logits)
    kept = slice(None)
    if name in DECODERS and MASKS[mask] is not None:
        kept = MASKS[mask].bool()
    torch.testing.assert_close(by_ours[kept], theirs[kept], rtol=2e-5, atol=2e-5)


@decoders
def test_steps_with_a_cache_stay(name):
    def run(model):
        cache, found = DynamicCache(config=model.config), []
        for begin, end in ((0, 140), (140, 145), (145, 146)):
            named = {"past_key_values": cache, "attention_mask": REAL[:, :end]}
            found.append(model(IDS[:, begin:end], **named).logits[:, -1])
        return torch.stack(found)

    theirs, by_ours = both(name, run)
    torch.testing.assert_close(by_ours, theirs, **CLOSE)


@pytest.mark.parametrize("name", some([n for n in MODELS if n != "pop2piano"], ("mpt", "t5")))
def test_the_same_is_generated(name):
    def run(model, **cache):
        named = {"attention_mask": REAL, "max_new_tokens": 4, "do_sample": False}
        return model.generate(IDS, **named, **cache)

    theirs, by_ours = both(name, run)
    assert torch.equal(by_ours, theirs)
    with patch_biases(built(name)):
        assert torch.equal(run(built(name), cache_implementation="static"), theirs)


@torch.no_grad()
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["bloom", "falcon", "mpt"])
def test_a_query_that_sees_later_keys_has_the_models_bias_for_them(name, mask, monkeypatch):
    """Theirs rises with the number of the key, on both sides of the query."""
    if name == "mpt" and MASKS[mask] is None:
        return  # transformers makes no mask then, and fails
    model = built(name)
    monkeypatch.setattr(model.config, "is_causal", False, raising=False)
    named = inputs(name, MASKS[mask])
    theirs, by_ours = both(name, lambda model: model(**named, use_cache=False).logits)
    kept = slice(None) if MASKS[mask] is None else MASKS[mask].bool()
    torch.testing.assert_close(by_ours[kept], theirs[kept], **CLOSE)


def test_a_mask_of_a_prefix_that_sees_itself_is_honored_by_mpt():
    seen = torch.ones(LENGTH, LENGTH).bool().tril()
    seen[:50, :50] = True
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    theirs, by_ours = both("mpt", lambda model: model(IDS, attention_mask=mask).logits)
    torch.testing.assert_close(by_ours, theirs, **CLOSE)


def test_the_bias_of_falcon_is_no_longer_rounded():
    """Its own is bfloat16: at 4999 · 2⁻² steps are 8, so each of two keys is 4 off; over √8."""
    with patch_biases(built("falcon")) as patched:
        assert 0.5 < patched.own_error <= 8 / 8**0.5
        assert patched.biases[0].slopes[0] == 2.0**-2 / 8**0.5
    with patch_biases(built("bloom")) as patched:
        assert patched.own_error < 1e-3


@pytest.mark.parametrize(
    ("name", "heads"),
    [  # Bloom 560M, 3B and 176B; MPT 7B and 30B; Falcon RW 1B and 7B
        ("bloom", 16), ("bloom", 32), ("bloom", 112), ("mpt", 32), ("mpt", 64), ("falcon", 32),
        ("falcon", 64),
    ],
)  # fmt: skip
def test_models_of_published_head_counts_are_taken(name, heads):
    """Bloom raises a rounded base to the power of a head's number: more heads, more rounding."""
    cls, config = DECODERS[name]
    narrow = {"d_model": 2 * heads, "n_layers": 1, "n_heads": heads} if name == "mpt" else {
        "hidden_size": 2 * heads, "n_layer": 1, "n_head": heads, "num_hidden_layers": 1,
        "num_attention_heads": heads}  # fmt: skip
    model = cls(type(config)(**config.to_dict() | narrow)).eval()
    with torch.no_grad():
        theirs = model(IDS[:1]).logits
        with patch_biases(model) as patched:
            assert patched.biases[0].heads == heads
            if name != "falcon":  # which rounds its slopes to bfloat16, and far keys with them
                torch.testing.assert_close(model(IDS[:1]).logits, theirs, **CLOSE)


def test_mpt_reads_past_its_table():
    config = MptConfig(vocab_size=97, d_model=16, n_layers=1, n_heads=2, max_seq_len=16)
    model = MptForCausalLM(config).eval()
    with torch.no_grad(), patch_biases(model):
        long = model(IDS[:1, :40]).logits
        torch.testing.assert_close(model(IDS[:1, :16]).logits, long[:, :16], **CLOSE)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (BloomForCausalLM, BloomConfig(vocab_size=40, hidden_size=48, n_layer=1, n_head=12)),
        (MptForCausalLM, MptConfig(vocab_size=40, d_model=48, n_layers=1, n_heads=12)),
    ],
)
def test_models_in_float64_round_their_slopes_and_softmax_to_float32(kind, config):
    """They are as far from ours as those in float32, and admitted with any weights."""
    for seed in range(4):
        torch.manual_seed(seed)
        model = kind(config).eval()
        for weight in model.parameters():
            if weight.ndim == 2:
                torch.nn.init.normal_(weight, 0, 0.5 / weight.shape[-1] ** 0.5)
        ids, model = torch.arange(30)[None], model.double()
        before = model(ids).logits
        with patch_biases(model):
            torch.testing.assert_close(model(ids).logits, before, rtol=0, atol=1e-5)


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


def test_encoders_alone_and_in_training():
    torch.manual_seed(0)
    model = T5EncoderModel(T5Config(**T5, dropout_rate=0.5)).train()
    with patch_biases(model):
        model(IDS, attention_mask=REAL).last_hidden_state.sum().backward()
    table = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
    assert table.weight.grad.abs().max() > 0


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


def test_biases_are_those_of_the_configuration():
    with patch_biases(built("bloom")) as patched:
        assert repr(patched.biases) == repr([ALiBi(6)])
    with patch_biases(built("umt5")) as patched:
        sides = [(b.buckets, b.bidirectional) for b in patched.biases]
        assert sides == [(20, True)] * 2 + [(20, False)] * 2


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
        with pytest.raises(ValueError, match="weights"):
            model(**inputs(name), output_attentions=True)
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
    (FalconForCausalLM, FalconConfig(**TINY), "Falcon"),
    (BloomForCausalLM, BloomConfig(**BLOOM, pretraining_tp=2, slow_but_exact=True), "slow_but"),
]


@pytest.mark.parametrize(("kind", "config", "noun"), REFUSED)
def test_other_models_are_refused_with_a_reason(kind, config, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        patch_biases(kind(config))


def test_a_model_without_weights_is_refused():
    with torch.device("meta"):
        empty = BloomForCausalLM(BloomConfig(**BLOOM))
    with pytest.raises(ValueError, match="meta"):
        patch_biases(empty)


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
