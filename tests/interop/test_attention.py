"""``attn_implementation="posenc"`` in tiny random models, held against ``"eager"``."""

import copy
import functools

import pytest
import torch
import transformers as tf

from posenc.interop.huggingface import register_attention, unregister_attention

SIZES = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip
HALVES = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}

DECODERS = {
    "llama": tf.LlamaConfig(**SIZES),
    "gemma2": tf.Gemma2Config(**SIZES, head_dim=8, sliding_window=5, attn_logit_softcapping=0.5,
                           query_pre_attn_scalar=2),
    "gpt_oss": tf.GptOssConfig(**SIZES, head_dim=8, **HALVES, **EXPERTS),
    "llama4": tf.Llama4TextConfig(**SIZES, head_dim=8, attention_chunk_size=5, num_local_experts=2,
                               intermediate_size_mlp=48,
                               layer_types=["chunked_attention", "full_attention"]),
}  # fmt: skip
MORE_DECODERS = {
    "mistral": tf.MistralConfig(**SIZES, sliding_window=5),
    "gemma3": tf.Gemma3TextConfig(**SIZES, head_dim=8, **HALVES),
    "qwen2": tf.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=5,
                            max_window_layers=1),
    "qwen3": tf.Qwen3Config(**SIZES, head_dim=8),
    "qwen3_moe": tf.Qwen3MoeConfig(**SIZES, head_dim=8, num_experts=2, num_experts_per_tok=1,
                                moe_intermediate_size=16),
    "phi3": tf.Phi3Config(**SIZES, sliding_window=5),
    "cohere": tf.CohereConfig(**SIZES),
    "gpt_neox": tf.GPTNeoXConfig(**{k: v for k, v in SIZES.items() if "key_value" not in k}),
    "gpt2": tf.GPT2Config(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64,
                       eos_token_id=None, bos_token_id=1, pad_token_id=0),
    "opt": tf.OPTConfig(vocab_size=97, hidden_size=32, ffn_dim=48, num_hidden_layers=2,
                     num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=32,
                     pad_token_id=0, eos_token_id=None),
}  # fmt: skip
ENCODERS = {
    "bert": tf.BertConfig(**SIZES),
    "modernbert": tf.ModernBertConfig(**SIZES, local_attention=6,
                                   layer_types=["sliding_attention", "full_attention"]),
}  # fmt: skip
CONFIGS = DECODERS | MORE_DECODERS | ENCODERS

decoders = pytest.mark.parametrize(
    "name",
    [*DECODERS, *(pytest.param(n, marks=pytest.mark.slow("ten more")) for n in MORE_DECODERS)],
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
    config = copy.deepcopy(CONFIGS[name])
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
    theirs, ours = both(name, RUNS[run])
    torch.testing.assert_close(ours, theirs, **CLOSE)


@decoders
def test_the_same_text_is_generated(name):
    def run(model, **cache):
        return model.generate(
            IDS, attention_mask=REAL, max_new_tokens=7, do_sample=False, **cache
        )  # fmt: skip

    theirs, ours = both(name, run)
    assert torch.equal(ours, theirs)
    assert torch.equal(run(built(name), cache_implementation="static"), theirs)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("padded", [False, True])
def test_encoders_see_both_ways(name, padded):
    mask = REAL.flip(1) if padded else None
    theirs, ours = both(name, lambda model: model(IDS, attention_mask=mask).logits)
    kept = slice(None) if mask is None else mask.bool()
    torch.testing.assert_close(ours[kept], theirs[kept], **CLOSE)


def test_images_are_seen_whole():
    config = tf.ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=16, image_size=8, patch_size=2)  # fmt: skip
    model = tf.ViTModel(config).eval()
    pixels = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        theirs = model(pixels).last_hidden_state
        model.set_attn_implementation("posenc")
        torch.testing.assert_close(model(pixels).last_hidden_state, theirs, **CLOSE)


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_documents_begin_where_positions_begin_anew(name):
    places = torch.tensor([[*range(5), *range(9)]])
    named = {"input_ids": IDS[:1], "position_ids": places, "use_cache": False}
    theirs, ours = both(name, lambda model: model(**named).logits)
    torch.testing.assert_close(ours, theirs, **CLOSE)
    with torch.no_grad():
        alone = built(name)(IDS[:1, 5:]).logits
    torch.testing.assert_close(ours[:, 5:], alone, **CLOSE)


def test_documents_in_the_words_of_flash_attention():
    model = built("llama")
    model.set_attn_implementation("posenc")
    ends = torch.tensor([0, 5, 14], dtype=torch.int32)
    places = torch.tensor([[*range(5), *range(9)]])
    named = {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends}
    with torch.no_grad():
        packed = model(IDS[:1], position_ids=places, **named).logits  # a cache hides the places
        alone = model(IDS[:1, 5:]).logits
        torch.testing.assert_close(packed[:, 5:], alone, **CLOSE)
        with pytest.raises(ValueError, match="one packed row"):
            model(IDS, **named)
        named = dict.fromkeys(named, torch.tensor([0, 7, 14], dtype=torch.int32))
        with pytest.raises(ValueError, match="documents begin elsewhere"):
            model(IDS[:1], position_ids=places, use_cache=False, **named)


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_a_mask_of_four_axes_is_taken_as_it_is(kind):
    seen = torch.rand(1, 1, 14, 14, generator=torch.Generator().manual_seed(3)) < 0.5
    seen |= torch.eye(14, dtype=torch.bool)
    lowest = torch.finfo(torch.float32).min
    drawn = torch.zeros(seen.shape).masked_fill(~seen, lowest)
    model = built("llama")
    with torch.no_grad():
        model.set_attn_implementation("eager")
        theirs = model(IDS, attention_mask=drawn).logits
        model.set_attn_implementation("posenc")
        ours = model(IDS, attention_mask=seen if kind == torch.bool else drawn).logits
    torch.testing.assert_close(ours, theirs, **CLOSE)


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


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
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
    with torch.no_grad():
        expected = model(IDS, attention_mask=REAL, use_cache=False).logits
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        found = compiled(IDS, attention_mask=REAL, use_cache=False).logits
    torch.testing.assert_close(found[REAL.bool()], expected[REAL.bool()], **CLOSE)
