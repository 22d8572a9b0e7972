"""``attn_implementation="posenc"`` in tiny random models, held against ``"eager"``."""

import functools

import pytest
import torch
import transformers as tf

from posenc.interop.huggingface import register_attention, unregister_attention

SIZES = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip
HALVES = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
CHUNKS = {"attention_chunk_size": 5, "layer_types": ["chunked_attention", "full_attention"]}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
NARROW = {"head_dim": 8}

DECODERS = {
    "llama": {},
    "gemma2": {**NARROW, "sliding_window": 5, "attn_logit_softcapping": 0.5,
               "query_pre_attn_scalar": 2},
    "gpt_oss": {**NARROW, **HALVES, **EXPERTS},
    "llama4_text": {**NARROW, **CHUNKS, "num_local_experts": 2, "intermediate_size_mlp": 48},
}  # fmt: skip
MORE_DECODERS = {
    "mistral": {"sliding_window": 5},
    "gemma3_text": {**NARROW, **HALVES},
    "qwen2": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    "cohere": {},
    "gpt_neox": {"num_key_value_heads": 4},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
}  # fmt: skip
ENCODERS = {"bert": {}, "modernbert": {"local_attention": 6, "layer_types": HALVES["layer_types"]}}
FIELDS = DECODERS | MORE_DECODERS | ENCODERS

decoders = pytest.mark.parametrize(
    "name",
    [*DECODERS, *(pytest.param(n, marks=pytest.mark.slow("seven more")) for n in MORE_DECODERS)],
)

IDS = torch.randint(2, 97, (2, 14), generator=torch.Generator().manual_seed(0))
REAL = torch.ones_like(IDS)
REAL[0, :4] = 0
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.fixture(autouse=True, scope="module")
def registered():
    register_attention()
    yield
    unregister_attention()


@functools.cache
def built(name: str):
    torch.manual_seed(0)
    config = tf.AutoConfig.for_model(name, **SIZES | FIELDS[name])
    kind = tf.AutoModelForMaskedLM if name in ENCODERS else tf.AutoModelForCausalLM
    return kind.from_config(config, attn_implementation="eager").eval()


@torch.no_grad()
def both(name: str, run):
    """What ``run`` makes of the model by its eager attention, and by ours."""
    found = []
    for implementation in ("eager", "posenc"):
        model = built(name)
        model.set_attn_implementation(implementation)
        found.append(run(model))
    return found


def agree(name: str, run):
    theirs, ours = both(name, run)
    torch.testing.assert_close(ours, theirs, **CLOSE)
    return ours


def steps(cache_of):
    """A prompt, several tokens at once, then one by one, past every window."""

    def run(model):
        cache, found = cache_of(model.config), []
        for begin, end in ((0, 7), (7, 10), (10, 11), (11, 12)):
            out = model(IDS[:, begin:end], past_key_values=cache, attention_mask=REAL[:, :end])
            found.append(out.logits[:, -1])
        return torch.stack(found)

    return run


RUNS = {
    "prefill": lambda model: model(IDS).logits,
    "left padding": lambda model: model(IDS, attention_mask=REAL).logits[REAL.bool()],
    "dynamic cache": steps(lambda config: tf.DynamicCache(config=config)),
    "static cache": steps(lambda config: tf.StaticCache(config=config, max_cache_len=20)),
}


@decoders
@pytest.mark.parametrize("run", RUNS)
def test_logits_are_those_of_eager_attention(name, run):
    agree(name, RUNS[run])


@decoders
def test_the_same_text_is_generated(name):
    def run(model, **cache):
        named = {"attention_mask": REAL, "max_new_tokens": 7, "do_sample": False}
        return model.generate(IDS, **named, **cache)

    theirs, ours = both(name, run)
    assert torch.equal(ours, theirs)
    assert torch.equal(run(built(name), cache_implementation="static"), theirs)


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_see_both_ways(name):
    seen = REAL.flip(1)
    agree(name, lambda model: model(IDS).logits)
    agree(name, lambda model: model(IDS, attention_mask=seen).logits[seen.bool()])


def test_images_are_seen_whole():
    config = tf.ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=16, image_size=8, patch_size=2)  # fmt: skip
    model, pixels = tf.ViTModel(config).eval(), torch.randn(1, 3, 8, 8)
    theirs = model(pixels).last_hidden_state
    model.set_attn_implementation("posenc")
    torch.testing.assert_close(model(pixels).last_hidden_state, theirs, **CLOSE)


PACKED = torch.tensor([[*range(5), *range(9)]])


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_documents_begin_where_positions_begin_anew(name):
    named = {"input_ids": IDS[:1], "position_ids": PACKED, "use_cache": False}
    ours = agree(name, lambda model: model(**named).logits)
    torch.testing.assert_close(ours[:, 5:], built(name)(IDS[:1, 5:]).logits, **CLOSE)


def test_documents_in_the_words_of_flash_attention_are_refused():
    model = built("llama")
    model.set_attn_implementation("posenc")
    with pytest.raises(ValueError, match="cu_seq_lens_q"):
        model(IDS, cu_seq_lens_q=torch.tensor([0, 5, 14], dtype=torch.int32))


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_a_mask_of_four_axes_is_taken_as_it_is(kind):
    seen = torch.rand(1, 1, 14, 14, generator=torch.Generator().manual_seed(3)) < 0.5
    seen |= torch.eye(14, dtype=torch.bool)
    drawn = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)

    def run(model):
        is_ours = model.config._attn_implementation == "posenc" and kind == torch.bool
        return model(IDS, attention_mask=seen if is_ours else drawn).logits

    agree("llama", run)


def test_training_gives_the_gradients_of_eager_attention():
    labels = IDS.masked_fill(REAL == 0, -100)
    labels[0, 4] = -100  # padding would have to foretell it

    def run(model):
        model.zero_grad()
        with torch.enable_grad():
            model(IDS, attention_mask=REAL, labels=labels).loss.backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    for theirs, ours in zip(*both("llama", run), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_weights_of_attention_are_refused(name):
    model = built(name)
    model.set_attn_implementation("posenc")
    with pytest.raises(ValueError, match="weights"):
        model(IDS, output_attentions=True)


def test_a_model_that_forms_its_own_scores_is_refused():
    config = tf.BloomConfig(vocab_size=97, hidden_size=16, n_layer=1, n_head=2)
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="posenc")
    with pytest.raises(TypeError, match="ToldMask"):
        model(IDS)


@pytest.mark.slow("a graph is made for each")
@pytest.mark.compiles("a model is compiled whole")
def test_a_compiled_graph_draws_its_masks():
    model = built("llama")
    model.set_attn_implementation("posenc")
    named = {"attention_mask": REAL, "use_cache": False}
    with torch.no_grad():
        expected = model(IDS, **named).logits
        found = torch.compile(model, backend="eager", fullgraph=True)(IDS, **named).logits
    torch.testing.assert_close(found[REAL.bool()], expected[REAL.bool()], **CLOSE)


def test_no_mask_of_queries_by_keys_is_made():
    given = []
    model = built("gpt_oss")
    model.set_attn_implementation("posenc")
    note = lambda _, __, named: given.append(named["attention_mask"])  # noqa: E731
    hooks = [
        layer.self_attn.register_forward_pre_hook(note, with_kwargs=True)
        for layer in model.model.layers
    ]
    with torch.no_grad():
        model(IDS)
    for hook in hooks:
        hook.remove()
    assert [(mask.is_causal, mask.window, mask.padding) for mask in given] == [
        (True, 5, None), (True, None, None)]  # fmt: skip
