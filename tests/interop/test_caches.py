"""Caches of transformers' models, moved and re-rotated: held against computing them again."""

import pytest
import torch
from tests.oracle_models import building, caching
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    DynamicCache,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    StaticCache,
)

from posenc import Rotary
from posenc.frequencies import Geometric, Linear, YaRN
from posenc.interop.caches.storage import measured_types
from posenc.interop.huggingface import (
    move_cached_keys,
    patch,
    rerotate_cached_keys,
    rotary_from_config,
)

TINY = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
SAME = torch.full((1, 9), 5)
"""Equal tokens: computed again, all layers see the same contents."""
LONGER = YaRN(Geometric(8), factor=4.0, trained_length=2048)


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**TINY)).eval()


@pytest.fixture(scope="module")
def gemma() -> Gemma3ForCausalLM:
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        **TINY, head_dim=8, sliding_window=4, layer_types=["sliding_attention", "full_attention"]
    )
    return Gemma3ForCausalLM(config).eval()


def alike(ours, theirs, count: int | None = None) -> bool:
    return all(
        torch.allclose(
            getattr(a, name)[..., :count, :], getattr(b, name)[..., :count, :], atol=2e-6
        )
        for a, b in zip(ours.layers, theirs.layers, strict=True)
        for name in ("keys", "values")
    )


# One family that keeps heads, one that keeps latents with their rotated part reordered, one of
# complex numbers; then the others.
KINDS = ["qwen3", "deepseek_v3", "llama4_text"]
SLOW = pytest.mark.slow("builds a model of each of some 130 types")
OTHERS = [pytest.param(name, marks=SLOW) for name in sorted(measured_types() - {*KINDS})]


@pytest.mark.parametrize("model_type", KINDS + OTHERS)
def test_a_moved_cache_is_the_one_computed_there(model_type):
    assert caching.fault(model_type) is None


def test_generation_goes_on_from_a_rerotated_cache(llama):
    cache = llama(SAME, use_cache=True).past_key_values
    assert rerotate_cached_keys(cache, llama, LONGER) is cache
    next_one = torch.tensor([[5]])
    with patch(llama, rotary=LONGER):
        assert alike(cache, llama(SAME, use_cache=True).past_key_values)
        given = llama(next_one, past_key_values=cache).logits
        wanted = llama(torch.cat((SAME, next_one), -1)).logits[:, -1:]
    assert torch.allclose(given, wanted, atol=1e-5)


@pytest.mark.parametrize("model_type", ["llama4_text", "hunyuan_v1_dense"])
def test_an_attention_factor_that_a_norm_takes_away_is_refused(model_type):
    """Linear has none, and agrees; YaRN's would be on our keys alone."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **TINY, head_dim=8))
    model.eval().requires_grad_(False)
    plain = rotary_from_config(model.config).frequencies
    while not isinstance(plain, Geometric):
        plain = plain.of
    cache = model(SAME, use_cache=True).past_key_values
    before = cache.layers[0].keys.clone()
    with pytest.raises(ValueError, match="attention factor"):
        rerotate_cached_keys(cache, model, YaRN(plain, factor=4.0, trained_length=64))
    assert torch.equal(cache.layers[0].keys, before)
    rerotate_cached_keys(cache, model, Linear(plain, 4.0))
    with patch(model, rotary=Linear(plain, 4.0)):
        again = model(SAME, use_cache=True).past_key_values
    assert torch.allclose(cache.layers[0].keys, again.layers[0].keys, atol=1e-5)


def test_static_caches_keep_their_tensors_and_their_empty_places(llama):
    cache = StaticCache(config=llama.config, max_cache_len=12)
    llama(SAME, past_key_values=cache)
    before = cache.layers[0].keys
    address, empty = before.data_ptr(), before[:, :, 9:].clone()
    there = torch.arange(50, 59)
    with torch.no_grad():
        move_cached_keys(cache, llama, there)
    again = llama(SAME, position_ids=there[None], use_cache=True).past_key_values
    assert cache.layers[0].keys.data_ptr() == address
    assert not cache.layers[0].keys.requires_grad
    assert torch.equal(cache.layers[0].keys[:, :, 9:], empty)
    assert alike(cache, again, 9)


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_windows_hold_the_last_tokens_and_other_frequencies(gemma, static):
    cache = StaticCache(config=gemma.config, max_cache_len=9) if static else DynamicCache(
        config=gemma.config)  # fmt: skip
    gemma(SAME, past_key_values=cache)
    full = Linear(Geometric(8, 1e6), factor=2.0)
    there = torch.arange(9) + 30
    move_cached_keys(cache, gemma, there)
    sliding = cache.layers[0].keys.clone()
    rerotate_cached_keys(cache, gemma, {"full_attention": full}, positions=there)
    assert torch.equal(cache.layers[0].keys, sliding)
    with patch(gemma, rotary={"full_attention": full}):
        again = gemma(SAME, position_ids=there[None], use_cache=True).past_key_values
    kept = min(cache.layers[0].keys.shape[-2], again.layers[0].keys.shape[-2])
    ours, theirs = (c.layers[0].keys[..., -kept:, :] for c in (cache, again))
    assert torch.allclose(ours, theirs, atol=2e-6)
    assert torch.allclose(cache.layers[1].keys, again.layers[1].keys, atol=2e-6)


def test_padded_rows_give_their_positions(llama):
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, :4] = 0
    ids = SAME.expand(2, -1)
    where = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = llama(ids, attention_mask=mask, position_ids=where, use_cache=True).past_key_values
    rerotate_cached_keys(cache, llama, LONGER, positions=where)
    alone = llama(SAME[:, :5], use_cache=True).past_key_values
    rerotate_cached_keys(alone, llama, LONGER)
    assert torch.allclose(cache.layers[1].keys[1:, :, 4:], alone.layers[1].keys, atol=2e-6)


def test_a_model_that_keeps_its_keys_otherwise_is_refused(llama, monkeypatch):
    """Planted: the configuration says other frequencies than those that the model rotates by."""
    cache = llama(SAME, use_cache=True).past_key_values
    monkeypatch.setitem(llama.config.rope_parameters, "rope_theta", 5e5)
    with pytest.raises(ValueError, match="no manner that is known"):
        rerotate_cached_keys(cache, llama, Rotary(8))


def test_positions_past_the_change_of_frequencies_are_refused():
    """Few tokens may stand far away: transformers goes by the largest position."""
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    config = LlamaConfig(**TINY, max_position_embeddings=80, rope_parameters=rope)
    model, ids, far = LlamaForCausalLM(config).eval(), torch.arange(9)[None], torch.arange(200, 209)
    there = model(ids, position_ids=far[None], use_cache=True).past_key_values
    here = model(ids, use_cache=True).past_key_values
    for change in (
        lambda: move_cached_keys(here, model, far),
        lambda: move_cached_keys(there, model, torch.arange(9), from_positions=far),
        lambda: rerotate_cached_keys(there, model, LONGER, positions=far),
    ):
        with pytest.raises(ValueError, match="reach position 208"):
            change()
    near = model(ids, position_ids=torch.arange(70, 79)[None], use_cache=True).past_key_values
    moved = move_cached_keys(here, model, torch.arange(70, 79))
    torch.testing.assert_close(moved.layers[0].keys, near.layers[0].keys, rtol=0, atol=1e-5)


def test_a_model_whose_frequencies_switch_early_is_measured_before_they_do():
    lists = {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "factor": 4.0}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, **lists,
            "original_max_position_embeddings": 32}  # fmt: skip
    config = LlamaConfig(**TINY, max_position_embeddings=128, rope_parameters=rope)
    model, ids, there = LlamaForCausalLM(config).eval(), torch.arange(9)[None], torch.arange(20, 29)
    cache = move_cached_keys(model(ids, use_cache=True).past_key_values, model, there)
    again = model(ids, position_ids=there[None], use_cache=True).past_key_values
    torch.testing.assert_close(cache.layers[0].keys, again.layers[0].keys, rtol=0, atol=1e-5)


@pytest.mark.slow("a model of each of two dozen types, patched")
@pytest.mark.parametrize("model_type", ["llama", "qwen2", "phi", "gemma2", "mistral", "gpt_neox"])
def test_rerotation_agrees_with_each_patched_family(model_type):
    model = building.built(building.config_of(model_type))
    storage = caching.measured_storage(model)
    width = 2 * len(storage[0].encoding.frequencies)
    longer = YaRN(Geometric(width), factor=4.0, trained_length=2048)
    cache = model(SAME, use_cache=True).past_key_values
    rerotate_cached_keys(cache, model, longer)
    with patch(model, rotary=longer), torch.no_grad():
        again = model(SAME, use_cache=True).past_key_values
    for ours, theirs in zip(cache.layers, again.layers, strict=True):
        assert torch.allclose(ours.keys, theirs.keys, atol=1e-4)
